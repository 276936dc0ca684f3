"""Errors of the interaction layer."""

from engine.api.errors import PravahaError


class ConfigurationError(PravahaError):
    """A setting that can't be used; the message names its source."""
