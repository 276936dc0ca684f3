"""Errors a caller can act on. Each message is one sentence: what was wrong, where, what to do."""


class PravahaError(Exception):
    """Base of every error that Pravāha raises on purpose."""


class InvalidRequest(PravahaError):
    """A request the engine refuses; nothing was queued.

    Attributes:
        param: name of the offending field in the API's vocabulary, or None.
    """

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class UnknownRequest(InvalidRequest):
    """No live request has the id."""


class QueueFull(PravahaError):
    """The bounded queue is full: retry later."""


class EngineUnavailable(PravahaError):
    """The engine is loading, draining, stopped or failed, and takes no new work."""


class ModelError(PravahaError):
    """A model file or directory that cannot be used: missing, damaged or unsupported."""


class UnsupportedByNativeError(ModelError):
    """A sound model that the native executor does not run; the torch executor may."""


class ModelNotFound(ModelError):
    """No model of that name is installed here."""


class FetchError(ModelError):
    """A model could not be downloaded; nothing half-made was left behind."""


class ExecutorError(PravahaError):
    """An executor's step failed."""
