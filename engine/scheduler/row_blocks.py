"""`RowBlocks`: allocates the KV blocks that the next tokens of rows need."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.rows import RowTable
from engine.memory.block_manager import BlockManager


class RowBlocks:
    """Counts and allocates blocks of rows. Engine's thread only; a few numpy calls per pass."""

    def __init__(self, table: RowTable, blocks: BlockManager) -> None:
        self._table = table
        self._blocks = blocks

    def missing(
        self, batch: NDArray[np.int32], num_scheduled_tokens: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """[R] int32, blocks each row must allocate for its next `num_scheduled_tokens` tokens.

        A row may hold more than it needs: those of a longer chunk, in a step that failed.
        """
        table = self._table
        end = table.num_computed[batch] + num_scheduled_tokens
        whole = (end + (table.block_size - 1)) // table.block_size
        missing: NDArray[np.int32] = np.maximum(whole - table.num_blocks[batch], 0)
        return missing

    def allocate(self, batch: NDArray[np.int32], counts: NDArray[np.int32]) -> None:
        """Allocate `counts[i]` blocks for row `batch[i]` and append them to its block table.

        The caller has checked that enough blocks are free.
        """
        if not np.count_nonzero(counts):
            return
        total = int(counts.sum())
        table = self._table
        held = table.num_blocks[batch]
        before = np.cumsum(counts, dtype=np.int32) - counts
        columns = np.arange(total, dtype=np.int32) + np.repeat(held - before, counts)
        table.block_tables[np.repeat(batch, counts), columns] = self._blocks.allocate(total)
        table.num_blocks[batch] = held + counts

    def promised(self, rows: NDArray[np.int32]) -> int:
        """Number of blocks that running rows still need for the tokens they already have."""
        table = self._table
        whole = (table.num_tokens[rows] + (table.block_size - 1)) // table.block_size
        return int(np.maximum(whole - table.num_blocks[rows], 0).sum())
