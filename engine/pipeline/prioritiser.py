"""Prioritisers: who runs first, who waits, who is preempted. One small object per policy.

A policy orders; it never counts blocks or tokens, which is the scheduler's business.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.pipeline.rows import RowTable
from engine.queue import RequestQueue


class Prioritiser(Protocol):
    """Orders running rows and picks from the waiting line. Called by the engine's thread.

    Attributes:
        static: the order of running rows changes only when a row is placed or released, so the
            scheduler may keep it between steps.
    """

    static: bool

    def order(self, table: RowTable, rows: NDArray[np.int32], now: float) -> NDArray[np.int32]:
        """`rows`, best first. The last is the first victim of preemption. No loop over rows."""
        ...

    def pick(self, waiting: RequestQueue, now: float) -> int:
        """Index in the (non-empty) line of the sequence to admit next."""
        ...


class FirstComeFirstServed:
    """By submission number. A preempted sequence keeps its number, and so its place."""

    static = True

    def order(self, table: RowTable, rows: NDArray[np.int32], now: float) -> NDArray[np.int32]:
        """Oldest first."""
        return rows[np.argsort(table.arrival[rows])]

    def pick(self, waiting: RequestQueue, now: float) -> int:
        """The front of the line."""
        return 0
