"""Why a client's settings are not changed."""

from engine.api.errors import PravahaError


class SettingsError(PravahaError):
    """The settings of a client cannot be read or changed; nothing was written."""
