"""Errors of the conversation store."""

from engine.api.errors import PravahaError


class StoreError(PravahaError):
    """The conversation database cannot be used; the message says why and what to do."""
