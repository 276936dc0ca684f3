"""Earliest deadline first."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.waiting_columns import Line
from engine.scheduler.policies.deadlines import apart, deadlines_of
from engine.scheduler.work_predictor import WorkPredictor


class EarliestDeadlineFirst:
    """By deadline (Liu and Layland 1973), lost ones last."""

    static = False

    def __init__(self, work: WorkPredictor) -> None:
        self._work = work

    def keys(self, line: Line, now: float) -> NDArray[np.float64]:
        """The deadlines."""
        deadlines = deadlines_of(line)
        lost = now + self._work.first_token_seconds(line) / self._work.haste > deadlines
        return apart(deadlines, line, lost)
