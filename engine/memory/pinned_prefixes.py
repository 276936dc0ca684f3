"""`PinnedPrefixes`: prefixes whose blocks stay in the pool after the last request has released them.

A pin covers the full blocks of a prefix that are in the prefix cache when it is made; it computes nothing and
reads nothing from the swap tier. Pinned blocks are shared like any cached ones, and no allocation evicts
them. They are not running requests' memory, so two limits keep the pool usable: all pins together cover at
most `MAX_SHARE` of it, and the oldest pin is dropped when a request could not run otherwise.

Engine's thread only. Cost: one pass over the pool's pin counts per pin; nothing per step.
"""

import numpy as np
from numpy.typing import NDArray

from engine.memory.allocator import Allocator

MAX_SHARE = 0.5
"""Maximum share of the pool's blocks that may be pinned."""
MAX_PINS = 256
"""Maximum number of pins; a further one drops the oldest."""


class PinnedPrefixes:
    """The pins of one pool, by id, oldest first.

    Attributes:
        dropped: (id, blocks) of pins that were dropped for a request, until the caller clears it.
    """

    def __init__(self, allocator: Allocator) -> None:
        """No pins."""
        self._allocator = allocator
        self._most = int(allocator.num_blocks * MAX_SHARE)
        self._pins: dict[str, NDArray[np.int32]] = {}
        self.dropped: list[tuple[str, int]] = []

    def __len__(self) -> int:
        return len(self._pins)

    def pin(self, pin_id: str, blocks: NDArray[np.int32]) -> int:
        """Pin the leading blocks of a prefix, as many as the share allows; an id in use is replaced.

        Args:
            pin_id: names the pin.
            blocks: [B] int32, cached or active blocks of a prefix, first one first.

        Returns:
            The number of blocks pinned. A pin without blocks is not kept.
        """
        self.unpin(pin_id)
        if len(self._pins) >= MAX_PINS:
            self.drop_oldest()
        pins = self._allocator.pins()
        room = self._most - int(np.count_nonzero(pins))
        new = np.cumsum(pins[blocks] == 0)
        blocks = blocks[new <= room]
        if blocks.size:
            self._allocator.pin(blocks)
            self._pins[pin_id] = blocks
        return len(blocks)

    def unpin(self, pin_id: str) -> int:
        """End a pin; its blocks stay cached until they are evicted. Unknown ids are ignored.

        Returns:
            The number of blocks it covered.
        """
        blocks = self._pins.pop(pin_id, None)
        if blocks is None:
            return 0
        # Last to first, so that the tail is evicted before the head.
        self._allocator.unpin(np.ascontiguousarray(blocks[::-1]))
        return len(blocks)

    def drop_oldest(self) -> bool:
        """End the oldest pin because a request needs its blocks; False if there is none."""
        if not self._pins:
            return False
        oldest = next(iter(self._pins))
        self.dropped.append((oldest, self.unpin(oldest)))
        return True

    def may_be_freed(self, blocks: NDArray[np.int32]) -> NDArray[np.bool_]:
        """[B] bool, whether releasing the last reference of each block makes it available."""
        if not self._pins:
            return np.ones(len(blocks), np.bool_)
        return np.equal(self._allocator.pins()[blocks], 0)

    def check_integrity(self) -> None:
        """Raise if the pins and the allocator's counts disagree; for tests.

        Raises:
            AssertionError: they do.
        """
        counts = np.zeros(self._allocator.num_blocks, np.int64)
        for blocks in self._pins.values():
            counts[blocks] += 1
        if not np.array_equal(counts, self._allocator.pins()):
            raise AssertionError("the allocator's pins are not those of the pinned prefixes")
        if np.count_nonzero(counts) > self._most:
            raise AssertionError("more blocks are pinned than the share allows")
