"""Invariants between block tables, step plans and the pool, which the allocator cannot check.

For tests and debugging: O(tables), with Python loops over rows.
"""

import numpy as np
from numpy.typing import NDArray

from engine.batch.rows import RowTable
from engine.executors.base import StepPlan
from engine.memory.block_manager import BlockManager
from engine.memory.image_identity import identity_tokens
from engine.memory.kv_identity import NO_CACHE_SALT


def check_tables(blocks: BlockManager, table: RowTable) -> None:
    """Check between steps: refcounts match the block tables, and each row's next write is exclusive.

    Raises:
        AssertionError: a block is leaked or dangling, a row would write into a shared block, or the
            trie does not find a row's indexed blocks by the row's tokens.
    """
    held = np.zeros(blocks.num_blocks, np.int64)
    size = table.block_size
    for row in range(table.max_rows):
        count = int(table.num_blocks[row])
        mine = table.block_tables[row, :count]
        if (mine < 0).any() or (table.block_tables[row, count:] != -1).any():
            raise AssertionError(f"row {row} has {count} blocks, but its block table does not")
        if table.sequences[row] is None and count:
            raise AssertionError(f"row {row} holds {count} blocks without a sequence")
        if len(set(mine.tolist())) != count:
            raise AssertionError(f"row {row} holds a block twice")
        held[mine] += 1
        _check_tail(blocks, table, row, mine)
        indexed = int(table.num_indexed[row])
        if indexed and blocks.prefixes is None:
            raise AssertionError(f"row {row} has indexed blocks, but prefix caching is off")
        if indexed and blocks.prefixes is not None:
            salt = table.cache_salts.get(row, NO_CACHE_SALT)
            tokens = table.token_table[row, : indexed * size]
            identity = identity_tokens(tokens, table.images.get(row, ()), size)
            named = blocks.prefixes.match(identity, salt)
            if not np.array_equal(named, mine[:indexed]):
                raise AssertionError(f"the trie finds {named} for row {row}, which holds {mine}")
    wrong = np.flatnonzero(held != blocks.refcounts())
    if wrong.size:
        block = int(wrong[0])
        raise AssertionError(
            f"block {block} is in {held[block]} tables, its refcount is {blocks.refcounts()[block]}"
        )


def _check_tail(blocks: BlockManager, table: RowTable, row: int, mine: NDArray[np.int32]) -> None:
    """Check that the blocks the row writes next are held by no other row and not indexed."""
    computed = int(table.num_computed[row])
    first_written = computed // table.block_size
    if first_written > len(mine):
        raise AssertionError(f"row {row} computed {computed} tokens in {len(mine)} blocks")
    writes = mine[first_written:]
    if writes.size and (blocks.claims(writes) != 1).any():
        raise AssertionError(f"row {row} would write blocks {writes}, which are shared or indexed")


def check_writes(blocks: BlockManager, plan: StepPlan) -> None:
    """Check a step: each block it writes has refcount 1, is not indexed, and has one writer.

    Raises:
        AssertionError: a block is shared, indexed, or written by two rows.
    """
    size = blocks.block_size
    written: dict[int, int] = {}
    for index, row in enumerate(plan.rows.tolist()):
        positions = plan.positions[plan.query_start[index] : plan.query_start[index + 1]]
        columns = np.unique(positions // size)
        mine = np.ascontiguousarray(plan.block_tables[row, columns])
        if (blocks.claims(mine) != 1).any():
            raise AssertionError(f"row {row} writes blocks {mine}, which are shared or indexed")
        for block in mine.tolist():
            if written.setdefault(block, row) != row:
                raise AssertionError(f"rows {written[block]} and {row} write block {block}")
