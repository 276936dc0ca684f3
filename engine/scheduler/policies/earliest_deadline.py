"""Earliest deadline first."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_record import WaitingColumns
from engine.scheduler.policies.deadlines import deadlines_of, partition_keys
from engine.scheduler.work_predictor import WorkPredictor


class EarliestDeadlineFirst:
    """By deadline (Liu and Layland 1973); requests with an infeasible deadline last."""

    static = False

    def __init__(self, work: WorkPredictor) -> None:
        self._work = work

    def keys(self, columns: WaitingColumns, now: float) -> NDArray[np.float64]:
        """[n] float64, the deadlines as instants."""
        deadlines = deadlines_of(columns)
        infeasible = (
            now + self._work.first_token_seconds(columns) / self._work.optimism_factor > deadlines
        )
        return partition_keys(deadlines, columns, infeasible)
