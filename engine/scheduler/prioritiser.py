"""`Prioritiser`: who runs first, who waits, who is preempted. One small object a policy.

A policy orders; it never counts blocks or budgets, which is the scheduler's business. Each is one
file of `engine.scheduler.policies`; `engine.scheduler.ranking` applies it.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.batch.waiting_columns import Line


class Prioritiser(Protocol):
    """A key for every request. Called by the engine's thread; no loop over requests.

    Attributes:
        static: a request's key never changes, so the order of running rows may be kept until one
            is placed.
    """

    static: bool

    def keys(self, line: Line, now: float) -> NDArray[np.float64]:
        """[n] float64, lower goes first. Equal keys go by longer cached prefix, then by arrival."""
        ...
