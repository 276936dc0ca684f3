"""`Finish`: how a request finished."""

from dataclasses import dataclass

from engine.api.request import FinishReason


@dataclass(frozen=True, slots=True)
class Finish:
    """How a request finished.

    Attributes:
        reason: why it finished.
        error: one sentence when `reason` is `error`.
        stop_string: the stop string that ended the text, if one did.
    """

    reason: FinishReason
    error: str | None = None
    stop_string: str | None = None


STOPPED = Finish(FinishReason.STOP)
LENGTH_REACHED = Finish(FinishReason.LENGTH)
ABORTED = Finish(FinishReason.ABORT)


def failed(error: str) -> Finish:
    """The finish of a request that failed, with a sentence that says why."""
    return Finish(FinishReason.ERROR, error)
