"""`BlockCopies`: the copies that the next step needs made before it.

A fork, and a prompt found whole in the cache, begin inside a block that others hold too: its first
tokens are theirs as well, its rest is not. Such a request writes in the very step that admits it,
so it gets a copy of that one block then; whoever else holds the block never notices. Every other
block is shared as it is. So a row's next write always falls into a block of its own.
"""

import numpy as np

from engine.executors.base import Executor
from engine.memory.block_manager import BlockManager


class BlockCopies:
    """Copies decided on and not made yet. Owned by the scheduler.

    Attributes:
        made: blocks copied since the engine started.
    """

    def __init__(self, blocks: BlockManager) -> None:
        self._blocks = blocks
        self._sources: list[int] = []
        self._targets: list[int] = []
        self.made = 0

    def add(self, source: int) -> int:
        """Decide to copy a block into a fresh one, which the caller holds from now on.

        The caller's reference on `source` passes to this object and is given back by `settle`, so
        that nothing else is written there before the copy is made.
        """
        (target,) = self._blocks.allocate(1).tolist()
        self._sources.append(source)
        self._targets.append(target)
        return int(target)

    def make(self, executor: Executor) -> None:
        """Have the executor copy, in the order decided: a target may be a later copy's source."""
        if self._sources:
            executor.copy_blocks(
                np.array(self._sources, np.int32), np.array(self._targets, np.int32)
            )
            self.made += len(self._sources)

    def settle(self) -> None:
        """Give up the sources; called before the step, whether or not the copies were made."""
        if self._sources:
            self._blocks.release(np.array(self._sources, np.int32))
            self._sources, self._targets = [], []
