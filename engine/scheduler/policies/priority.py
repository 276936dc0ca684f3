"""The caller's priority."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.waiting_columns import Line


class PriorityOrder:
    """By the request's `priority`, lower first: vLLM's meaning of the field.

    It decides admission, the order of prefills, and who is preempted when blocks run out. A running
    request is never preempted only because a better one waits.
    """

    static = True

    def keys(self, line: Line, now: float) -> NDArray[np.float64]:
        """The priorities."""
        return line.priority.astype(np.float64)
