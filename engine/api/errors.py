"""Exceptions that a caller can act on. A message is one sentence: what was wrong, where, what to do."""


class PravahaError(Exception):
    """Base of every error that Pravāha raises on purpose."""


class InvalidRequest(PravahaError):
    """An invalid request; nothing was queued.

    Attributes:
        param: name of the invalid field as the API spells it, or None.
    """

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class UnknownRequest(InvalidRequest):
    """No live request has the id."""


class QueueFull(PravahaError):
    """The bounded request queue is full: retry later."""


class EngineUnavailable(PravahaError):
    """The engine is loading, draining, stopped or failed, and accepts no requests."""


class ModelError(PravahaError):
    """A model file or directory is missing, damaged or not supported."""


class UnsupportedByNativeError(ModelError):
    """A valid model that the native executor does not support; the torch executor may."""


class ModelNotFound(ModelError):
    """No model of that name is installed."""


class FetchError(ModelError):
    """A model could not be downloaded; partial downloads were removed."""


class FetchInterrupted(FetchError):
    """A download from a hub broke off; the files that arrived whole are kept for the next attempt."""


class ExecutorError(PravahaError):
    """An executor's step failed.

    Attributes:
        entry: the entry of the plan that was invalid, in which case nothing was computed and the
            other entries are not at fault; None for any other failure.
    """

    def __init__(self, message: str, *, entry: int | None = None) -> None:
        super().__init__(message)
        self.entry = entry
