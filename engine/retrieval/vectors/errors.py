"""Errors of vector files; each message is one sentence that a user can act on."""

from engine.api.errors import PravahaError


class DamagedVectors(PravahaError):
    """A file is not a vector file, is shorter than it says, or is of another version."""


class VectorIndexUnavailable(PravahaError):
    """The server with the vectors cannot be reached, or refuses."""
