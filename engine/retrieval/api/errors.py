"""Errors of retrieval; each message is one sentence that a user can act on."""

from engine.api.errors import InvalidRequest


class Unreadable(Exception):
    """A file has no text that can be indexed; the message says why. Indexing goes on with the others."""


class UnknownCollection(InvalidRequest):
    """There is no collection of this name."""


class UnknownDocument(InvalidRequest):
    """The collection has no such document."""
