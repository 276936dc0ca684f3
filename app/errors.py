"""Errors of the interaction layer."""

from engine.errors import PravahaError


class ConfigurationError(PravahaError):
    """A setting that can't be used; the message names its source."""
