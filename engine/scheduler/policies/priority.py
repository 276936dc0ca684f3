"""The caller's priority."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_record import WaitingColumns


class PriorityOrder:
    """By the request's `priority`, lower first: vLLM's meaning of the field.

    It decides admission, the order of prefills, and who is preempted when blocks run out. A running
    request is never preempted only because a better one waits.
    """

    static = True

    def keys(self, columns: WaitingColumns, now: float) -> NDArray[np.float64]:
        """The priorities."""
        return columns.priority.astype(np.float64)
