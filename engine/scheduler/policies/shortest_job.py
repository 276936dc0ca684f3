"""Shortest job first."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_record import WaitingColumns
from engine.scheduler.work_predictor import WorkPredictor


class ShortestJobFirst:
    """By predicted remaining work, prompt and output, which minimises the mean latency.

    The output length is unknown; `WorkPredictor.mean_output_tokens` is assumed.
    """

    static = False

    def __init__(self, work: WorkPredictor) -> None:
        self._work = work

    def keys(self, columns: WaitingColumns, now: float) -> NDArray[np.float64]:
        """[n] float64, predicted seconds of compute."""
        return self._work.job_seconds(columns)
