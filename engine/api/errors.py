"""Exceptions that a caller can act on. A message is one sentence: what was wrong, where, what to do."""


class PravahaError(Exception):
    """Base of every error that Pravāha raises on purpose."""


class InvalidRequest(PravahaError):
    """An invalid request; nothing was queued.

    Attributes:
        code: what clients of the API tell this kind of refusal by, or None.
        param: name of the invalid field as the API spells it, or None.
    """

    code: str | None = None

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class ContextLengthExceeded(InvalidRequest):
    """The prompt has no room in the context.

    Clients find out by the text: most drop the code, and each looks for another server's words. It has
    those of OpenAI ("maximum context length is N tokens", "reduce the length of the messages") and of
    Anthropic ("prompt is too long: A tokens > B maximum").
    """

    code = "context_length_exceeded"

    def __init__(
        self,
        excess: str,
        context_length: int,
        *,
        param: str,
        includes_answer: bool = True,
        bound: str = "",
        advice: str = "",
    ) -> None:
        """Compose the text.

        Args:
            excess: what there is too much of, such as `exceeding(5000, 4095)`.
            context_length: in tokens.
            param: as in `InvalidRequest`.
            includes_answer: whether an answer needs a part of the context.
            bound: what sets the length, if not the model.
            advice: what may be done beside reducing the messages.
        """
        answer = ", the answer included" if includes_answer else ""
        super().__init__(
            f"This model's maximum context length is {context_length} tokens{bound}{answer}; "
            f"the prompt is too long: {excess}. Please reduce the length of the messages{advice}.",
            param=param,
        )


def exceeding(num_tokens: int, maximum: int) -> str:
    """The excess of a prompt of so many tokens."""
    return f"{num_tokens} tokens > {maximum} maximum"


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


class ModelDoesNotFit(ModelError):
    """A valid model for which there is not enough memory now."""


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
