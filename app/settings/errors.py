"""Errors of the settings."""

from engine.api.errors import PravahaError


class ConfigurationError(PravahaError):
    """A setting has an invalid value; the message names its source."""
