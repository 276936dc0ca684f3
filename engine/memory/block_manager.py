"""`BlockManager`: who may take KV blocks and when they come back.

Invariants: a block is held by at least one row's table or is free; what `allocate` returned comes
back through `release` exactly once per holder. Called by the engine's thread alone. Cost: one call
into the Rust allocator, whatever the number of blocks.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.snapshot import BlockCounts, BlockState


class Stats(Protocol):
    """Blocks by state, of one instant; `engine._core.AllocatorStats` has more."""

    @property
    def free(self) -> int:
        """Held by nobody, holding nothing."""
        ...

    @property
    def cached(self) -> int:
        """Held by nobody, kept for the prefix they hold."""
        ...

    @property
    def active(self) -> int:
        """Held."""
        ...


class Allocator(Protocol):
    """What the manager asks of `engine._core.BlockAllocator`; tests put a naive one here."""

    @property
    def num_free(self) -> int:
        """Blocks that `allocate` can hand out, cached ones included."""
        ...

    @property
    def num_blocks(self) -> int:
        """Blocks in the pool."""
        ...

    def allocate(self, count: int, /) -> NDArray[np.int32]:
        """Take `count` blocks, or raise and take none."""
        ...

    def retain(self, blocks: NDArray[np.int32] | Sequence[int], /) -> None:
        """Add one holder to each block."""
        ...

    def release(self, blocks: NDArray[np.int32] | Sequence[int], /) -> None:
        """Remove one holder from each block, in the order given."""
        ...

    def stats(self) -> Stats:
        """The pool in numbers, at O(1)."""
        ...

    def states(self) -> NDArray[np.uint8]:
        """[blocks] uint8, values of `BlockState`."""
        ...

    def refcounts(self) -> NDArray[np.uint16]:
        """[blocks] uint16."""
        ...

    def check_integrity(self) -> None:
        """Raise if the books do not balance."""
        ...


class BlockManager:
    """Hands out blocks of one pool and takes them back."""

    def __init__(self, allocator: Allocator, *, block_size: int, block_bytes: int) -> None:
        self._allocator = allocator
        self.block_size = block_size
        self.block_bytes = block_bytes

    @property
    def num_blocks(self) -> int:
        """Blocks in the pool."""
        return self._allocator.num_blocks

    @property
    def num_free(self) -> int:
        """Blocks that can be taken now."""
        return self._allocator.num_free

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold `tokens` tokens of one sequence."""
        return -(-tokens // self.block_size)

    def allocate(self, count: int) -> NDArray[np.int32]:
        """Take `count` blocks. The caller has compared `count` with `num_free`.

        Returns:
            [count] int32, in the order in which they should be filled.
        """
        return self._allocator.allocate(count)

    def release(self, blocks: NDArray[np.int32]) -> None:
        """Give back a sequence's blocks, which are in sequence order.

        They are released in reverse, so that the tail of a sequence is reused before its head,
        which another sequence is likelier to share.
        """
        if blocks.size:
            self._allocator.release(np.ascontiguousarray(blocks[::-1]))

    def counts(self) -> BlockCounts:
        """The pool in numbers."""
        stats = self._allocator.stats()
        return BlockCounts(
            total=self._allocator.num_blocks,
            free=stats.free,
            active=stats.active,
            cached=stats.cached,
            block_size=self.block_size,
            block_bytes=self.block_bytes,
        )

    def states(self) -> NDArray[np.uint8]:
        """[blocks] uint8, values of `BlockState`."""
        return self._allocator.states()

    def refcounts(self) -> NDArray[np.uint16]:
        """[blocks] uint16, holders of each block."""
        return self._allocator.refcounts()

    def check_integrity(self) -> None:
        """Raise if the allocator's books do not balance with its counts."""
        self._allocator.check_integrity()
        active = int(np.count_nonzero(self.states() == BlockState.ACTIVE))
        if active + self.num_free != self.num_blocks:
            raise AssertionError(
                f"{active} active and {self.num_free} free blocks do not make {self.num_blocks}"
            )
