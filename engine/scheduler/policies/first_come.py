"""First come, first served."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.waiting_columns import Line


class FirstComeFirstServed:
    """By submission number. A preempted sequence keeps its number, and so its place."""

    static = True

    def keys(self, line: Line, now: float) -> NDArray[np.float64]:
        """Oldest first."""
        return line.arrival.astype(np.float64)
