"""First come, first served."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_record import WaitingColumns


class FirstComeFirstServed:
    """By submission number. A preempted sequence keeps its number and so its position."""

    static = True

    def keys(self, columns: WaitingColumns, now: float) -> NDArray[np.float64]:
        """[n] float64, the submission numbers."""
        return columns.arrival.astype(np.float64)
