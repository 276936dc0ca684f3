"""`BlockDetail` and `PrefixTree`: what one KV block holds, and the prefix cache as a tree."""

from dataclasses import dataclass

from engine.api.snapshot import BlockState

MAX_CHAINS = 128
"""Default limit of a prefix tree: each chain costs the caller tens of microseconds, for its text."""


@dataclass(frozen=True, slots=True)
class BlockOwner:
    """A request that holds a block.

    Attributes:
        request_id: the request.
        first_token: position of the block's first token in the request's sequence.
    """

    request_id: str
    first_token: int


@dataclass(frozen=True, slots=True)
class BlockDetail:
    """One block at about one instant.

    Attributes:
        block: its id.
        state: free, active or cached.
        refcount: requests that reference it.
        pins: pins that keep it.
        owners: the requests that hold it, the first to arrive first.
        fill: tokens stored in it.
        token_ids: those tokens, -1 in a cached block with an image; empty for a free block.
        text: the tokens as text, control tokens included. Not safe for a terminal.
        first_token: position of its first token in its sequence, or None if it is free.
        last_used: when it was last released, on the clock of `EngineSnapshot.time`, as of the last block
            map; None while it is in use, or for never.
        parent: the block that holds the tokens before these; None for a first block, or if neither a
            request nor the prefix cache knows.
        children: blocks that continue it in the prefix cache.
    """

    block: int
    state: BlockState
    refcount: int
    pins: int
    owners: tuple[BlockOwner, ...]
    fill: int
    token_ids: tuple[int, ...]
    text: str
    first_token: int | None
    last_used: float | None
    parent: int | None
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PrefixChain:
    """A run of cached blocks without a fork.

    Attributes:
        parent: index of the chain that it continues in `PrefixTree.chains`; -1 for none.
        first_block: its first block.
        num_blocks: how many it has.
        first_token: position of its first token.
        refcount: requests that reference its first block; later blocks have at most as many.
        pinned: how many of its blocks are pinned.
        text: the tokens of its first block as text. Not safe for a terminal.
        blocks: all of its blocks, the first one first.
    """

    parent: int
    first_block: int
    num_blocks: int
    first_token: int
    refcount: int
    pinned: int
    text: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """The prefix cache, breadth first.

    Attributes:
        chains: a chain comes after the one it continues.
        block_size: tokens in a block.
        truncated: whether chains were left out; the deepest ones are.
    """

    chains: tuple[PrefixChain, ...]
    block_size: int
    truncated: bool
