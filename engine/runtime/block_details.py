"""Describes single blocks and the prefix tree, on the reader's thread.

The allocator and the trie answer atomically; block tables are read without a lock, so a description that is
made while a step ends can mix two steps. It is for people to look at.
"""

from collections.abc import Callable, Sequence

import numpy as np

from engine.api.block_detail import (
    MAX_CHAINS,
    BlockDetail,
    BlockOwner,
    PrefixChain,
    PrefixTree,
)
from engine.api.snapshot import BlockState
from engine.batch.rows import RowTable
from engine.memory.block_manager import BlockManager
from engine.memory.image_identity import IN_IMAGE

Decode = Callable[[Sequence[int]], str]
"""Text of token ids, control tokens included."""


def describe_block(
    block: int,
    blocks: BlockManager,
    table: RowTable,
    *,
    decode: Decode,
    last_used: float | None,
) -> BlockDetail:
    """What one block of the pool holds. O(blocks + rows × blocks of a row).

    Args:
        block: a block of the pool.
        blocks: the pool.
        table: the rows whose block tables refer to it.
        decode: text of token ids.
        last_used: when it was last released, or None.
    """
    owners, position, fill, tokens, parent = _held(block, blocks, table)
    children: tuple[int, ...] = ()
    node = None if blocks.prefixes is None else blocks.prefixes.node(block)
    if node is not None:
        depth, parent, below, indexed = node
        children = tuple(below.tolist())
        position, fill = (depth - 1) * blocks.block_size, len(indexed)
        tokens = np.maximum(indexed, IN_IMAGE).tolist()
    return BlockDetail(
        block=block,
        state=BlockState(int(blocks.states()[block])),
        refcount=int(blocks.refcounts()[block]),
        pins=int(blocks.pins()[block]),
        owners=owners,
        fill=fill,
        token_ids=tuple(tokens),
        text=decode(_texts(tokens)),
        first_token=position,
        last_used=last_used,
        parent=parent,
        children=children,
    )


def _held(
    block: int, blocks: BlockManager, table: RowTable
) -> tuple[tuple[BlockOwner, ...], int | None, int, list[int], int | None]:
    """Owners, position, fill, tokens and parent of a block by the block tables."""
    rows = np.flatnonzero(table.num_blocks)
    found, columns = np.nonzero(table.block_tables[rows] == block)
    holders = sorted(
        (int(table.arrival[row]), int(row), int(column))
        for row, column in zip(rows[found], columns, strict=True)
    )
    owners = []
    for _, row, column in holders:
        sequence = table.sequences[row]
        if sequence is not None:
            owners.append(BlockOwner(sequence.request_id, column * blocks.block_size))
    if not holders:
        return (), None, 0, [], None
    _, row, column = holders[0]
    start = column * blocks.block_size
    fill = int(np.clip(table.num_computed[row] - start, 0, blocks.block_size))
    tokens: list[int] = table.token_table[row, start : start + fill].tolist()
    parent = int(table.block_tables[row, column - 1]) if column else None
    return tuple(owners), start, fill, tokens, parent


def _texts(tokens: Sequence[int]) -> list[int]:
    """The tokens without those of blocks with images, whose ids the cache does not have."""
    return [token for token in tokens if token >= 0]


def describe_tree(blocks: BlockManager, *, decode: Decode, limit: int = MAX_CHAINS) -> PrefixTree:
    """The prefix cache as at most `limit` chains; empty without a prefix cache. O(indexed blocks)."""
    if blocks.prefixes is None:
        return PrefixTree((), blocks.block_size, truncated=False)
    parents, lengths, members, truncated = blocks.prefixes.chains(limit)
    refcounts, pins = blocks.refcounts(), blocks.pins()
    ends = np.cumsum(lengths)
    starts = ends - lengths
    positions: list[int] = []
    chains: list[PrefixChain] = []
    for parent, start, end in zip(parents.tolist(), starts.tolist(), ends.tolist(), strict=True):
        above = 0 if parent < 0 else positions[parent] + chains[parent].num_blocks
        positions.append(above)
        first = int(members[start])
        node = blocks.prefixes.node(first)  # None if it was evicted since
        chains.append(
            PrefixChain(
                parent=parent,
                first_block=first,
                num_blocks=end - start,
                first_token=above * blocks.block_size,
                refcount=int(refcounts[first]),
                pinned=int(np.count_nonzero(pins[members[start:end]])),
                text="" if node is None else decode(_texts(node[3].tolist())),
                blocks=tuple(members[start:end].tolist()),
            )
        )
    return PrefixTree(tuple(chains), blocks.block_size, truncated)
