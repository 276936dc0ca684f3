"""Shortest job first."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_record import WaitingColumns
from engine.scheduler.work_predictor import WorkPredictor


class ShortestJobFirst:
    """By predicted work left, prompt and answer: it lowers the mean latency of all.

    How long an answer will be is not known; `WorkPredictor.answer_tokens` says what is assumed.
    """

    static = False

    def __init__(self, work: WorkPredictor) -> None:
        self._work = work

    def keys(self, columns: WaitingColumns, now: float) -> NDArray[np.float64]:
        """Predicted seconds of the machine."""
        return self._work.job_seconds(columns)
