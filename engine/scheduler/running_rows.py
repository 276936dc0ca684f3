"""`RunningRows`: the rows that hold a request, in the policy's order."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.rows import RowTable
from engine.scheduler.ordering import Ranking


class RunningRows:
    """Rows that hold a request. Engine's thread only.

    The order is computed on demand, not when a row is added or removed: a pass over decodes alone
    needs none.

    Attributes:
        rows: [R] int32, in the order last computed, new rows at the end. Replaced by a new array
            whenever a row is added or removed or the order changes; do not modify it.
    """

    def __init__(self, table: RowTable, ranking: Ranking) -> None:
        self.rows: NDArray[np.int32] = np.zeros(0, np.int32)
        self._table = table
        self._ranking = ranking
        self._stale = False  # whether the order may have changed

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, row: int) -> None:
        """Add a row in which a request was placed."""
        self.rows = np.append(self.rows, np.int32(row))
        self._stale = True

    def remove(self, row: int) -> None:
        """Remove a row whose request was released."""
        self.rows = self.rows[self.rows != row]

    def invalidate_order(self) -> None:
        """Mark the order as stale: the policy or its keys may have changed."""
        self._stale = True

    def sort(self, now: float) -> None:
        """Put the rows in the policy's order if the order is stale."""
        if self._stale:
            self.rows = self._ranking.order(self._table, self.rows, now)
            self._stale = False
