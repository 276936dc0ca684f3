"""A reference block allocator: a list of reference counts and a queue of free blocks."""

from collections import deque
from types import SimpleNamespace

import numpy as np

from engine.api.snapshot import BlockState


class NaiveOutOfBlocksError(Exception):
    pass


class NaiveAllocator:
    def __init__(self, num_blocks, block_size):
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._counts = [0] * num_blocks
        self._free = deque(range(num_blocks))
        self._epoch = 0
        self._released_at = [0] * num_blocks

    @property
    def num_free(self):
        return len(self._free)

    def allocate(self, count):
        if count > len(self._free):
            raise NaiveOutOfBlocksError(f"{count} wanted, {len(self._free)} free")
        blocks = [self._free.popleft() for _ in range(count)]
        for block in blocks:
            self._counts[block] = 1
        return np.array(blocks, np.int32)

    def retain(self, blocks):
        for block in blocks:
            assert self._counts[block] > 0
            self._counts[block] += 1

    def release(self, blocks):
        for block in blocks:
            block = int(block)
            assert self._counts[block] > 0, f"block {block} released twice"
            self._counts[block] -= 1
            if self._counts[block] == 0:
                self._free.append(block)
                self._epoch += 1
                self._released_at[block] = self._epoch

    def claims(self, blocks):
        return np.array([self._counts[int(block)] for block in blocks], np.int32)

    def count_available(self, blocks):
        return sum(self._counts[int(block)] == 0 for block in blocks)

    def stats(self):
        free = len(self._free)
        return SimpleNamespace(
            free=free,
            cached=0,
            active=self.num_blocks - free,
            pinned=0,
            evicted_total=0,
            epoch=self._epoch,
        )

    def pin(self, blocks):
        raise AssertionError("nothing is indexed, so there is nothing to pin")

    unpin = pin

    def pins(self):
        return np.zeros(self.num_blocks, np.uint16)

    def released_at(self):
        return np.array(self._released_at, np.uint64)

    def states(self):
        active = np.array(self._counts) > 0
        return np.where(active, BlockState.ACTIVE, BlockState.FREE).astype(np.uint8)

    def refcounts(self):
        return np.array(self._counts, np.uint16)

    def check_integrity(self):
        assert sorted(self._free) == [b for b, n in enumerate(self._counts) if n == 0]
