"""Least remaining slack."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_record import WaitingColumns
from engine.scheduler.policies.deadlines import deadlines_of, partition_keys
from engine.scheduler.work_predictor import WorkPredictor


class LeastRemainingSlack:
    """By relative slack: the time to the deadline minus the predicted time to the first token.

    Slack is divided by the time from submission to deadline, so that a second of slack counts more
    for a deadline of one second than for one of a minute. Infeasible requests last.
    """

    static = False

    def __init__(self, work: WorkPredictor) -> None:
        self._work = work

    def keys(self, columns: WaitingColumns, now: float) -> NDArray[np.float64]:
        """[n] float64, slack as a fraction of the time from submission to deadline."""
        deadlines = deadlines_of(columns)
        left, work = deadlines - now, self._work.first_token_seconds(columns)
        infeasible = work / self._work.optimism_factor > left
        return partition_keys((left - work) / (deadlines - columns.queued_at), columns, infeasible)
