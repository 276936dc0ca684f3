"""`FinishedSequence`: a request that finished, and the delivery of that fact to its reader."""

from typing import NamedTuple

from engine.api.events import EventBus, RequestFinished
from engine.batch.finish import Finish
from engine.batch.sequence import Sequence


class FinishedSequence(NamedTuple):
    """A request that finished; its reader does not know yet.

    Attributes:
        sequence: the request.
        finish: how it ended.
        time: when, monotonic seconds.
    """

    sequence: Sequence
    finish: Finish
    time: float

    def deliver(self, events: EventBus) -> None:
        """Set the finish of the mailbox and publish the event.

        Called after the snapshot was published, so that a reader that sees the finish sees counters
        that include it.
        """
        sequence, finish = self.sequence, self.finish
        sequence.mailbox.set_finish(finish)
        if events.wanted(RequestFinished):
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
