"""Errors of the conversation store."""

from engine.api.errors import InvalidRequest, PravahaError


class StoreError(PravahaError):
    """The conversation database cannot be used; the message says why and what to do."""


class ConversationChanged(InvalidRequest):
    """Another process has added to this conversation; it was loaded again and nothing was added."""


class ContextFull(InvalidRequest):
    """The messages are longer than the context: shorten it with `ContextWindow.shorten`."""


class MessageTooLong(InvalidRequest):
    """The message is longer than the context even without all earlier ones."""
