"""Builds the `BlockMap`: state, owner and fill level of every block in the KV pool."""

import numpy as np
from numpy.typing import NDArray

from engine.api.snapshot import BlockMap, BlockState
from engine.batch.rows import RowTable
from engine.memory.block_manager import BlockManager
from engine.memory.release_times import ReleaseTimes

_NO_CHECKPOINTS: NDArray[np.int32] = np.zeros(0, np.int32)


def build_block_map(
    epoch: int, blocks: BlockManager, table: RowTable, releases: ReleaseTimes
) -> BlockMap:
    """Describe the pool at a step boundary. Engine's thread only; built on request.

    Args:
        epoch: number of this map.
        blocks: the pool.
        table: the rows whose block tables refer to the pool.
        releases: when blocks were released.
    """
    total = blocks.num_blocks
    owner = np.full(total, -1, np.int32)
    first_token = np.full(total, -1, np.int32)
    fill = np.zeros(total, np.uint8)
    rows = np.flatnonzero(table.num_blocks)
    # A shared block is attributed to its earliest request: assigned last, that entry stays.
    rows = rows[np.argsort(-table.arrival[rows])]
    held = table.num_blocks[rows]
    holder = np.repeat(np.arange(len(rows), dtype=np.int32), held)
    columns = np.arange(int(held.sum()), dtype=np.int32)
    columns -= np.repeat(np.cumsum(held, dtype=np.int32) - held, held)
    ids = table.block_tables[rows[holder], columns]
    starts = columns * table.block_size
    owner[ids] = holder
    first_token[ids] = starts
    fill[ids] = np.clip(table.num_computed[rows[holder]] - starts, 0, table.block_size)
    states = blocks.states()
    fill[states == BlockState.CACHED] = table.block_size  # only full blocks are indexed
    owners = tuple(
        sequence.request_id if (sequence := table.sequences[row]) is not None else ""
        for row in rows.tolist()
    )
    kept = blocks.recurrent or blocks.windows
    return BlockMap(
        epoch=epoch,
        state=states,
        refcount=blocks.refcounts(),
        fill=fill,
        owner=owner,
        owners=owners,
        first_token=first_token,
        pinned=blocks.pins() > 0,
        last_used=releases.last_used(blocks.released_at(), states),
        checkpoints=_NO_CHECKPOINTS if kept is None else kept.checkpoints.blocks(),
        held_blocks=ids,
        held_by=holder,
    )
