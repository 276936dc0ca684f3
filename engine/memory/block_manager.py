"""`BlockManager`: who may take KV blocks and when they come back.

Invariants: a block is held by at least one row's table or is free or cached; what `allocate`
returned or `retain` took comes back through `release` exactly once per holder. Called by the
engine's thread alone. Cost: one call into the Rust allocator, whatever the number of blocks.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.api.snapshot import BlockCounts, BlockState, SwapCounts

if TYPE_CHECKING:
    from engine.batch.rows import RowTable
    from engine.memory.prefix_cache import PrefixCache
    from engine.memory.swap_tier import SwapTier


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

    def claims(self, blocks: NDArray[np.int32] | Sequence[int], /) -> NDArray[np.int32]:
        """[n] int32, holders of each block, and one more if it is indexed."""
        ...

    def count_available(self, blocks: NDArray[np.int32] | Sequence[int], /) -> int:
        """How many of the blocks `num_free` counts."""
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
    """Hands out blocks of one pool and takes them back.

    Attributes:
        prefixes: what the blocks hold, findable; None when prefix caching is off.
        tier: where blocks go that are evicted; None without one, and while the weights load.
    """

    def __init__(
        self,
        allocator: Allocator,
        *,
        block_size: int,
        block_bytes: int,
        prefixes: "PrefixCache | None" = None,
    ) -> None:
        self._allocator = allocator
        self.prefixes = prefixes
        self.tier: SwapTier | None = None
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

        What this evicts is saved in the swap tier first.

        Returns:
            [count] int32, in the order in which they should be filled.
        """
        if self.tier is not None and count > self._allocator.stats().free:
            self.tier.save_victims(count)
        return self._allocator.allocate(count)

    def retain(self, blocks: NDArray[np.int32]) -> None:
        """Hold blocks that somebody else holds or that are cached; before allocating anything."""
        if blocks.size:
            self._allocator.retain(blocks)

    def claims(self, blocks: NDArray[np.int32]) -> NDArray[np.int32]:
        """[n] int32, holders of each block, and one more if it is indexed; 1 may be written."""
        return self._allocator.claims(blocks)

    def count_available(self, blocks: NDArray[np.int32]) -> int:
        """How many of the blocks `num_free` counts: retaining them takes those from it."""
        return self._allocator.count_available(blocks) if blocks.size else 0

    def release(self, blocks: NDArray[np.int32]) -> None:
        """Give back a sequence's blocks, which are in sequence order.

        They are released in reverse, so that the tail of a sequence is reused before its head,
        which another sequence is likelier to share.
        """
        if blocks.size:
            self._allocator.release(np.ascontiguousarray(blocks[::-1]))

    def lookup_prefix(self, tokens: NDArray[np.int32]) -> tuple[int, int]:
        """How many blocks of a prompt's beginning are cached, and how many more swapped.

        A hint for any thread: nothing is retained, and either may change at once.
        """
        if self.prefixes is None:
            return 0, 0
        cached, tier = len(self.prefixes.match(tokens)), self.tier
        if tier is None:
            return cached, 0
        return cached, len(tier.find(tokens, cached, (len(tokens) - 1) // self.block_size))

    def counts(self) -> BlockCounts:
        """The pool in numbers."""
        stats = self._allocator.stats()
        return BlockCounts(
            total=self._allocator.num_blocks,
            free=stats.free,
            active=stats.active,
            cached=stats.cached,
            swapped=0 if self.tier is None else self.tier.num_blocks,
            block_size=self.block_size,
            block_bytes=self.block_bytes,
        )

    def swap_counts(self) -> SwapCounts:
        """The swap tier in numbers."""
        return SwapCounts() if self.tier is None else self.tier.counts()

    def states(self) -> NDArray[np.uint8]:
        """[blocks] uint8, values of `BlockState`."""
        return self._allocator.states()

    def refcounts(self) -> NDArray[np.uint16]:
        """[blocks] uint16, holders of each block."""
        return self._allocator.refcounts()

    def check_integrity(self, table: "RowTable | None" = None) -> None:
        """Raise if the books do not balance. O(blocks + tables); for tests, between steps.

        Args:
            table: the rows that hold the blocks; with it, what the pool cannot see is checked too
                (`engine.memory.integrity`).

        Raises:
            AssertionError: saying what is wrong.
        """
        self._allocator.check_integrity()
        if self.tier is not None:
            self.tier.check_integrity()
        active = int(np.count_nonzero(self.states() == BlockState.ACTIVE))
        if active + self.num_free != self.num_blocks:
            raise AssertionError(
                f"{active} active and {self.num_free} free blocks do not make {self.num_blocks}"
            )
        if table is not None:
            from engine.memory.integrity import check_tables

            check_tables(self, table)
