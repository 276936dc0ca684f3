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

        For a model with recurrent layers, blocks behind the row's last checkpoint are of no use, and the
        checkpoint is copied as well. So is the window of a model with sliding windows.
        """
        table, tier, states = self._table, self._blocks.tier, self._blocks.recurrent
        windows = self._blocks.windows
        if tier is None:
            return False
        indexed = table.block_tables[row, : table.num_indexed[row]]
        if states is not None:
            checkpoint = states.checkpoints.find(indexed)
            useful = 0 if checkpoint is None else checkpoint.tokens // table.block_size
            indexed = indexed[:useful]
        own = indexed[self._blocks.refcounts()[indexed] == 1]
        shared = len(indexed) - len(own)
        recompute = self._work.prefill_seconds(
            len(own) * table.block_size, cached=shared * table.block_size
        )
        if states is not None and recompute is not None:
            recompute -= tier.round_trip_seconds(states.state_bytes)
        if windows is not None and recompute is not None:
            recompute -= tier.round_trip_seconds(windows.state_bytes)
        if tier.is_cheaper(own, recompute):
            tier.victims_swapped += 1
            return True
        tier.victims_recomputed += 1
        tier.skip_saving(own)
        if states is not None:
            states.skip_storing(own)
        if windows is not None:
            windows.skip_storing(own)
        return False
