"""Priority scheduling."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_record import WaitingColumns


class PriorityOrder:
    """By the request's `priority`, lower first, as in vLLM.

    It decides the order of admissions, prefills and preemptions. A running request is preempted only
    when blocks run out, not because a request of higher priority waits.
    """

    static = True

    def keys(self, columns: WaitingColumns, now: float) -> NDArray[np.float64]:
        """[n] float64, the priorities."""
        return columns.priority.astype(np.float64)
