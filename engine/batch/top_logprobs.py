"""`TopLogprobs`: the most likely alternatives of each generated token, for rows that requested them.

Nothing is allocated before the first such request. The tables double in width as the longest output
grows, so a step rarely allocates.
"""

import numpy as np
from numpy.typing import NDArray

from engine.executors.base import MAX_TOP_LOGPROBS

_FIRST_WIDTH = 64


class TopLogprobs:
    """Tables of [max_rows, width, MAX_TOP_LOGPROBS], row and output position to alternatives.

    The engine's thread records; any thread may copy, and checks afterwards that its row was not
    reassigned meanwhile (`engine.batch.mailbox`). Growing replaces the arrays and leaves the old intact.
    """

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        shape = (max_rows, 0, MAX_TOP_LOGPROBS)
        self._tables = (np.zeros(shape, np.int32), np.zeros(shape, np.float32))

    def record(
        self,
        rows: NDArray[np.int32],
        outputs: NDArray[np.int32],
        ids: NDArray[np.int32],
        logprobs: NDArray[np.float32],
    ) -> None:
        """Store a step's alternatives.

        Args:
            rows: [N] int32.
            outputs: [N] int32, position of the token in the row's output.
            ids: [N, K] int32, token ids of the alternatives.
            logprobs: [N, K] float32.
        """
        self.reserve(int(outputs.max()) + 1)
        table_ids, table_logprobs = self._tables
        table_ids[rows, outputs] = ids
        table_logprobs[rows, outputs] = logprobs

    def restore(self, row: int, ids: NDArray[np.int32], logprobs: NDArray[np.float32]) -> None:
        """Restore copied alternatives when a preempted request gets a row again."""
        self.reserve(len(ids))
        count, alternatives = ids.shape
        self._tables[0][row, :count, :alternatives] = ids
        self._tables[1][row, :count, :alternatives] = logprobs

    def reserve(self, width: int) -> None:
        """Grow the tables to at least `width` output positions per row."""
        old = self._tables[0].shape[1]
        if width <= old:
            return
        new = max(width, 2 * old, _FIRST_WIDTH)
        ids = np.zeros((self._max_rows, new, MAX_TOP_LOGPROBS), np.int32)
        logprobs = np.zeros((self._max_rows, new, MAX_TOP_LOGPROBS), np.float32)
        ids[:, :old], logprobs[:, :old] = self._tables
        self._tables = (ids, logprobs)

    def copy(
        self, row: int, start: int, stop: int, alternatives: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Ids and logprobs of output positions [start, stop): [stop - start, alternatives] each."""
        ids, logprobs = self._tables
        return (
            ids[row, start:stop, :alternatives].copy(),
            logprobs[row, start:stop, :alternatives].copy(),
        )
