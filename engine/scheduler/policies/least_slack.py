"""Least remaining slack."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_record import WaitingColumns
from engine.scheduler.policies.deadlines import apart, deadlines_of
from engine.scheduler.work_predictor import WorkPredictor


class LeastRemainingSlack:
    """By the time that can still be lost: to the deadline, less the predicted work before it.

    Relative to the whole time from submission to deadline, so that a second of slack is much for a
    request that is wanted in one and little for one that is wanted in a minute. Lost ones last.
    """

    static = False

    def __init__(self, work: WorkPredictor) -> None:
        self._work = work

    def keys(self, columns: WaitingColumns, now: float) -> NDArray[np.float64]:
        """Slack in shares of the time allowed: 1 at submission of no work."""
        deadlines = deadlines_of(columns)
        left, work = deadlines - now, self._work.first_token_seconds(columns)
        lost = work / self._work.optimism_factor > left
        return apart((left - work) / (deadlines - columns.queued_at), columns, lost)
