"""`BlockManager`: allocation and reference counting of KV blocks.

Invariants: a block is in the block table of at least one row, or it is free or cached. Every
reference taken by `allocate` or `retain` is dropped by `release` exactly once. Called by the
engine's thread only. Cost: one call into the Rust allocator, whatever the number of blocks.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.api.snapshot import BlockCounts, BlockState, StateCounts, SwapCounts, WindowCounts
from engine.memory.allocator import Allocator
from engine.memory.pinned_prefixes import PinnedPrefixes
from engine.memory.sessions import Sessions

if TYPE_CHECKING:
    from engine.batch.rows import RowTable
    from engine.memory.prefix_cache import PrefixCache
    from engine.memory.recurrent_states import RecurrentStates
    from engine.memory.sliding_windows import SlidingWindows
    from engine.memory.swap_tier import SwapTier


class BlockManager:
    """Allocates, retains and releases the blocks of one pool.

    Attributes:
        prefixes: the prefix cache; None when prefix caching is off.
        pinned: prefixes that are kept in the pool.
        sessions: the sessions that come back, for which blocks are kept; None without a prefix cache.
        tier: the swap tier that keeps evicted blocks; None if there is none, or the weights are
            still loading.
        recurrent: the state slots of a model with recurrent layers; None for any other.
        windows: the window blocks of a model whose layers with a sliding window keep no more; None for any
            other.
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
        self.pinned = PinnedPrefixes(allocator)
        self.sessions = (
            None if prefixes is None else Sessions(allocator, prefixes, block_size=block_size)
        )
        self.tier: SwapTier | None = None
        self.recurrent: RecurrentStates | None = None
        self.windows: SlidingWindows | None = None
        self.block_size = block_size
        self.block_bytes = block_bytes

    @property
    def num_blocks(self) -> int:
        """Blocks in the pool."""
        return self._allocator.num_blocks

    @property
    def num_free(self) -> int:
        """Blocks that can be allocated now, cached ones included."""
        return self._allocator.num_free

    @property
    def num_unused(self) -> int:
        """Blocks that can be allocated without dropping anything that is cached."""
        free = self._allocator.stats().free
        return free if self.windows is None else min(free, self.windows.num_free)

    @property
    def num_growable(self) -> int:
        """Blocks that running rows can be given now: fewer than `num_free` if window blocks are short."""
        free = self._allocator.num_free
        return free if self.windows is None else min(free, self.windows.num_available)

    def blocks_for(self, tokens: int) -> int:
        """Number of blocks for `tokens` tokens of one sequence."""
        return -(-tokens // self.block_size)

    def allocate(self, count: int) -> NDArray[np.int32]:
        """Allocate `count` blocks; the caller has checked that `count` ≤ `num_growable`.

        Blocks that this evicts are first saved in the swap tier; their state checkpoints are dropped.

        Returns:
            [count] int32, in the order in which they should be filled.
        """
        blocks = self.allocate_hidden(count)
        if self.windows is not None:
            self.windows.add(blocks)
        return blocks

    def allocate_hidden(self, count: int) -> NDArray[np.int32]:
        """As `allocate`, with `count` ≤ `num_free`, for blocks that are in no row's window."""
        blocks = self._allocate(count)
        if self.windows is not None:
            self.windows.forget(blocks)
        return blocks

    def _allocate(self, count: int) -> NDArray[np.int32]:
        if count <= self._allocator.stats().free:
            return self._allocator.allocate(count)
        if self.sessions is not None:
            self.sessions.order_evictions()
        if self.tier is not None:
            self.tier.save_victims(count)
        blocks = self._allocator.allocate(count)
        if self.recurrent is not None:
            self.recurrent.drop_evicted()
        if self.windows is not None:
            self.windows.drop_evicted()
        return blocks

    def discard(self, blocks: NDArray[np.int32]) -> None:
        """Release allocated blocks that were not used, in the order in which they were to be filled."""
        if self.windows is not None:
            self.windows.let_go(blocks)
        self.release(blocks)

    def retain(self, blocks: NDArray[np.int32]) -> None:
        """Increment the refcount of active or cached blocks. Call before the next `allocate`."""
        if blocks.size:
            self._allocator.retain(blocks)

    def claims(self, blocks: NDArray[np.int32]) -> NDArray[np.int32]:
        """[n] int32, refcount plus one if the block is indexed; a block with 1 may be written."""
        return self._allocator.claims(blocks)

    def count_available(self, blocks: NDArray[np.int32]) -> int:
        """How many of `blocks` are in `num_free`; retaining `blocks` lowers it by that number."""
        return self._allocator.count_available(blocks) if blocks.size else 0

    def release(self, blocks: NDArray[np.int32]) -> None:
        """Release the blocks of a sequence, given in sequence order.

        They are released in reverse, so that the tail of a sequence is evicted before its head,
        which other sequences are more likely to share.
        """
        if blocks.size:
            self._allocator.release(np.ascontiguousarray(blocks[::-1]))

    def resident(self, tokens: NDArray[np.int32], cache_salt: bytes) -> NDArray[np.int32]:
        """[B] int32, the leading blocks of `tokens` that are in the pool; references are not incremented."""
        if self.prefixes is None:
            return np.zeros(0, np.int32)
        return self.prefixes.match(tokens, cache_salt)

    def lookup_prefix(self, tokens: NDArray[np.int32], cache_salt: bytes) -> tuple[int, int]:
        """Number of leading blocks of `tokens` in the pool, and of those that follow in the swap tier.

        For a model with recurrent layers, only up to the last block after which there is a state; for one
        with sliding windows, after which the window is complete. A hint, callable from any thread: references
        are not incremented and both numbers may change at any time.
        """
        cached, swapped = self.find_prefix(tokens, cache_salt)
        if self.recurrent is None and self.windows is None:
            return len(cached), swapped
        path = cached[: (len(tokens) - 1) // self.block_size]
        if self.windows is not None:
            found = self.windows.longest(cached)
            above, most = found * self.block_size, (len(path) + swapped) * self.block_size
            stored = self.windows.find(tokens, cache_salt, above=above, most=most)
        elif self.recurrent is not None:
            checkpoint, stored = self.recurrent.find(tokens, cache_salt, path, swapped)
            found = 0 if checkpoint is None else checkpoint.tokens // self.block_size
        if stored is not None:
            count = stored.tokens // self.block_size
            return min(count, len(path)), max(0, count - len(path))
        return found, 0

    def find_prefix(
        self, tokens: NDArray[np.int32], cache_salt: bytes
    ) -> tuple[NDArray[np.int32], int]:
        """As `lookup_prefix`, with the blocks in the pool themselves, the first one first."""
        if self.prefixes is None:
            return np.zeros(0, np.int32), 0
        cached, tier = self.prefixes.match(tokens, cache_salt), self.tier
        if tier is None:
            return cached, 0
        last = (len(tokens) - 1) // self.block_size
        return cached, len(tier.find(tokens, len(cached), last, cache_salt))

    def counts(self) -> BlockCounts:
        """Block counts by state, and the block's geometry."""
        stats = self._allocator.stats()
        return BlockCounts(
            total=self._allocator.num_blocks,
            free=stats.free,
            active=stats.active,
            cached=stats.cached,
            pinned=stats.pinned,
            swapped=0 if self.tier is None else self.tier.num_blocks,
            block_size=self.block_size,
            block_bytes=self.block_bytes,
        )

    @property
    def num_evicted(self) -> int:
        """Cached blocks evicted since the pool was created. O(1)."""
        return self._allocator.stats().evicted_total

    def save_idle(self) -> bool:
        """Save some unsaved blocks or a state in the swap tier, while idle; False if there are none."""
        if self.tier is None:
            return False
        if self.tier.save_idle():
            return True
        kept = self.recurrent or self.windows
        return kept is not None and kept.save_idle()

    def state_counts(self) -> StateCounts:
        """Slots of recurrent states by what they hold; all zero without them."""
        return StateCounts() if self.recurrent is None else self.recurrent.counts()

    def window_counts(self) -> WindowCounts:
        """Window blocks by state; all zero without them."""
        return WindowCounts() if self.windows is None else self.windows.counts()

    def swap_counts(self) -> SwapCounts:
        """Counters of the swap tier; all zero without one."""
        return SwapCounts() if self.tier is None else self.tier.counts()

    @property
    def epoch(self) -> int:
        """Grows with every change of any block. O(1)."""
        return self._allocator.stats().epoch

    def pins(self) -> NDArray[np.uint16]:
        """[num_blocks] uint16, pins of each block."""
        return self._allocator.pins()

    def released_at(self) -> NDArray[np.uint64]:
        """[num_blocks] uint64, the `epoch` at which each block was last released; 0 for never."""
        return self._allocator.released_at()

    def states(self) -> NDArray[np.uint8]:
        """[num_blocks] uint8, values of `BlockState`."""
        return self._allocator.states()

    def refcounts(self) -> NDArray[np.uint16]:
        """[num_blocks] uint16, references to each block."""
        return self._allocator.refcounts()

    def check_integrity(self, table: "RowTable | None" = None) -> None:
        """Raise if an invariant is violated. O(blocks + tables); for tests, between steps.

        Args:
            table: the rows that hold the blocks; if given, block tables and writes are checked too
                (`engine.memory.integrity`).

        Raises:
            AssertionError: an invariant is violated; the message names it.
        """
        self._allocator.check_integrity()
        self.pinned.check_integrity()
        if self.tier is not None:
            self.tier.check_integrity()
        if self.recurrent is not None:
            self.recurrent.check_integrity(table)
        if self.windows is not None:
            self.windows.check_integrity(table)
        active = int(np.count_nonzero(self.states() == BlockState.ACTIVE))
        if active + self.num_free != self.num_blocks:
            raise AssertionError(
                f"{active} active and {self.num_free} free blocks do not make {self.num_blocks}"
            )
        if table is not None:
            from engine.memory.integrity import check_tables

            check_tables(self, table)
