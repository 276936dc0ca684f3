"""`FinishedSequence`: a finished request whose finish is not delivered to its reader yet."""

from typing import NamedTuple

from engine.api.events import EventBus, RequestFinished
from engine.batch.finish import Finish
from engine.batch.sequence import Sequence


class FinishedSequence(NamedTuple):
    """A finished request whose finish is not delivered yet.

    Attributes:
        sequence: the request.
        finish: how it finished.
        time: when it finished, monotonic seconds.
    """

    sequence: Sequence
    finish: Finish
    time: float

    def deliver(self, events: EventBus) -> None:
        """Set the mailbox's finish and publish the event.

        Call it after publishing the snapshot: a reader that sees the finish then sees counters that
        include it.
        """
        sequence, finish = self.sequence, self.finish
        sequence.mailbox.set_finish(finish)
        if events.has_subscribers(RequestFinished):
            kept = sequence.mailbox.kept
            events.publish(
                RequestFinished(
                    self.time,
                    sequence.request_id,
                    finish.reason,
                    sequence.num_prompt,
                    len(kept.ids),
                    kept.timings,
                    finish.error,
                )
            )
