"""`Preemption`: chooses the row to preempt when the pool is full, and whether to swap its blocks."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.rows import RowTable
from engine.memory.block_manager import BlockManager
from engine.scheduler.work_predictor import WorkPredictor


class Preemption:
    """Chooses victims, and between swapping and recomputing them. Engine's thread only."""

    def __init__(self, table: RowTable, blocks: BlockManager, work: WorkPredictor) -> None:
        self._table = table
        self._blocks = blocks
        self._work = work

    def choose_victim(self, running: NDArray[np.int32]) -> int:
        """The last row, in the policy's order, whose preemption frees at least one block.

        Blocks that other rows hold as well, or that are pinned, do not become free. Falls back to the
        last row.

        Args:
            running: [R] int32, in the policy's order.
        """
        table, holders = self._table, self._blocks.refcounts()
        for row in running[:0:-1].tolist():
            blocks = table.block_tables[row, : table.num_blocks[row]]
            if ((holders[blocks] == 1) & self._blocks.pinned.may_be_freed(blocks)).any():
                return int(row)
        return int(running[-1])

    def choose_swap_or_recompute(self, row: int) -> bool:
        """Decide by measured cost whether the row's own blocks are swapped out when evicted.

        Returns that decision. The blocks stay cached until an allocation evicts them. Blocks shared with
        other rows are not affected.
        """
        table, tier = self._table, self._blocks.tier
        if tier is None:
            return False
        indexed = table.block_tables[row, : table.num_indexed[row]]
        own = indexed[self._blocks.refcounts()[indexed] == 1]
        shared = len(indexed) - len(own)
        recompute = self._work.prefill_seconds(
            len(own) * table.block_size, cached=shared * table.block_size
        )
        if tier.is_cheaper(own, recompute):
            tier.victims_swapped += 1
            return True
        tier.victims_recomputed += 1
        tier.skip_saving(own)
        return False
