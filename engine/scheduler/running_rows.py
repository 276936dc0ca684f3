"""`RunningRows`: the rows that hold a request, in the policy's order."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.rows import RowTable
from engine.scheduler.ordering import Ranking


class RunningRows:
    """Rows that hold a request. Engine's thread only.

    The order is computed when it is needed, not when a row comes or goes: a pass over nothing but
    decodes needs none.

    Attributes:
        rows: [R] int32, in the order last computed, new rows at the end. Replaced by a new array
            whenever a row comes or goes or the order changes; do not modify it.
    """

    def __init__(self, table: RowTable, ranking: Ranking) -> None:
        self.rows: NDArray[np.int32] = np.zeros(0, np.int32)
        self._table = table
        self._ranking = ranking
        self._stale = False  # whether the order may have changed

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, row: int) -> None:
        """A request was placed in `row`."""
        self.rows = np.append(self.rows, np.int32(row))
        self._stale = True

    def remove(self, row: int) -> None:
        """The request in `row` was released."""
        self.rows = self.rows[self.rows != row]

    def invalidate_order(self) -> None:
        """The keys of the policy, or the policy itself, may have changed."""
        self._stale = True

    def sort(self, now: float) -> None:
        """Put the rows in the policy's order, if they may be out of order."""
        if self._stale:
            self.rows = self._ranking.order(self._table, self.rows, now)
            self._stale = False
