"""`Allocator`: what the memory plane needs of a block allocator; `engine._core.BlockAllocator` has it."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Stats(Protocol):
    """Block counts by state at one instant: the part of `engine._core.AllocatorStats` used here."""

    @property
    def free(self) -> int:
        """Refcount 0 and not indexed."""
        ...

    @property
    def cached(self) -> int:
        """Refcount 0, indexed by the prefix trie."""
        ...

    @property
    def active(self) -> int:
        """Refcount 1 or more."""
        ...

    @property
    def evicted_total(self) -> int:
        """Cached blocks evicted since the pool was created."""
        ...

    @property
    def pinned(self) -> int:
        """Active blocks with a pin."""
        ...

    @property
    def epoch(self) -> int:
        """Grows with every change of any block."""
        ...


class Allocator(Protocol):
    """The part of `engine._core.BlockAllocator` used here; tests substitute a naive model."""

    @property
    def num_free(self) -> int:
        """Blocks that `allocate` can return: free and cached ones."""
        ...

    @property
    def num_blocks(self) -> int:
        """Blocks in the pool."""
        ...

    def allocate(self, count: int, /) -> NDArray[np.int32]:
        """Allocate `count` blocks, or raise and allocate none."""
        ...

    def retain(self, blocks: NDArray[np.int32] | Sequence[int], /) -> None:
        """Increment the refcount of each block."""
        ...

    def release(self, blocks: NDArray[np.int32] | Sequence[int], /) -> None:
        """Decrement the refcount of each block, in the order given."""
        ...

    def claims(self, blocks: NDArray[np.int32] | Sequence[int], /) -> NDArray[np.int32]:
        """[n] int32, refcount of each block, plus one if it is indexed."""
        ...

    def count_available(self, blocks: NDArray[np.int32] | Sequence[int], /) -> int:
        """How many of `blocks` are counted in `num_free`."""
        ...

    def stats(self) -> Stats:
        """Block counts by state. O(1)."""
        ...

    def states(self) -> NDArray[np.uint8]:
        """[num_blocks] uint8, values of `BlockState`."""
        ...

    def refcounts(self) -> NDArray[np.uint16]:
        """[num_blocks] uint16."""
        ...

    def pin(self, blocks: NDArray[np.int32] | Sequence[int], /) -> None:
        """Keep each cached or active block from being reused, until `unpin`."""
        ...

    def unpin(self, blocks: NDArray[np.int32] | Sequence[int], /) -> None:
        """Undo one `pin` of each block, in the order given."""
        ...

    def pins(self) -> NDArray[np.uint16]:
        """[num_blocks] uint16."""
        ...

    def released_at(self) -> NDArray[np.uint64]:
        """[num_blocks] uint64, the epoch at which each block was last released; 0 for never."""
        ...

    def generations(self) -> NDArray[np.uint32]:
        """[num_blocks] uint32, how often each block has been allocated."""
        ...

    def check_integrity(self) -> None:
        """Raise if an invariant is violated."""
        ...
