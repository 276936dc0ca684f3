"""`TokenIdLogprobs`: log-probabilities of chosen token ids, for the rows that requested them.

An entry is a pair (row, token id). The entries are sorted by row, each row's in the order of its
request; `StepResult.token_id_logprobs` has one value for each of them.
"""

import numpy as np
from numpy.typing import NDArray

_FIRST_WIDTH = 16


class TokenIdLogprobs:
    """For each such row a table of [width, K], output position to the logprobs of its K token ids.

    A row's table doubles as its output grows. The engine's thread writes; any thread may copy, and
    checks afterwards that its row was not reassigned meanwhile (`engine.batch.mailbox`). Growing
    replaces the table and leaves the old one intact.

    Attributes:
        rows, ids: [L] int32, the entries, for the step plan.
    """

    def __init__(self) -> None:
        """No row has entries."""
        self.rows = np.zeros(0, np.int32)
        self.ids = np.zeros(0, np.int32)
        self._tables: dict[int, NDArray[np.float32]] = {}

    def place(self, row: int, ids: NDArray[np.int32], kept: NDArray[np.float32]) -> None:
        """Add a row.

        Args:
            row: the row, which has no entries.
            ids: [K] int32, K > 0, its token ids.
            kept: [N, K] float32, values from before a preemption; N may be 0.
        """
        at = int(np.searchsorted(self.rows, row))
        self.rows = np.insert(self.rows, at, [row] * len(ids))
        self.ids = np.insert(self.ids, at, ids)
        table = np.zeros((max(_FIRST_WIDTH, len(kept)), len(ids)), np.float32)
        if len(kept):
            table[: len(kept)] = kept
        self._tables[row] = table

    def release(self, row: int) -> None:
        """Remove a row."""
        others = self.rows != row
        self.rows, self.ids = self.rows[others], self.ids[others]
        del self._tables[row]

    def record(
        self, rows: NDArray[np.int32], outputs: NDArray[np.int32], values: NDArray[np.float32]
    ) -> None:
        """Store the values of a step.

        Args:
            rows: [N] int32, rows that got a token.
            outputs: [N] int32, position of the token in the row's output.
            values: [L] float32, `StepResult.token_id_logprobs`.
        """
        if not self._tables:
            return
        positions = dict(zip(rows.tolist(), outputs.tolist(), strict=True))
        for row, table in self._tables.items():
            at = positions.get(row)
            if at is None:
                continue
            if at >= len(table):
                grown = np.zeros((max(at + 1, 2 * len(table)), table.shape[1]), np.float32)
                grown[: len(table)] = table
                self._tables[row] = table = grown  # the key exists, so the iteration goes on
            first = int(np.searchsorted(self.rows, row))
            table[at] = values[first : first + table.shape[1]]

    def copy(self, row: int, start: int, stop: int) -> NDArray[np.float32]:
        """Values of output positions [start, stop): [stop - start, K]; [0, 0] for a row without any."""
        table = self._tables.get(row)
        return np.zeros((0, 0), np.float32) if table is None else table[start:stop].copy()

    def __len__(self) -> int:
        return len(self._tables)
