"""`BlockCopies`: block copies (copy-on-write) that must be made before the next step.

A fork, and a prompt found completely in the cache, start inside a partially used block that other
requests also hold. Such a request writes into that block in the step that admits it, so it gets a
copy of it at admission. All other blocks are shared without a copy. Invariant: the next write of a
row always goes to a block that only this row holds.
"""

import numpy as np

from engine.executors.base import Executor
from engine.memory.block_manager import BlockManager


class BlockCopies:
    """Pending block copies. Owned by the scheduler.

    Attributes:
        num_copied: blocks copied since the engine started.
    """

    def __init__(self, blocks: BlockManager) -> None:
        self._blocks = blocks
        self._sources: list[int] = []
        self._targets: list[int] = []
        self.num_copied = 0

    def add(self, source: int) -> int:
        """Schedule a copy of `source` into a newly allocated block, and return that block.

        The caller holds the new block. The caller's reference on `source`, and its hold on the window
        block, move to this object, which drops them in `release_sources`; until then `source` cannot be
        reallocated.
        """
        (target,) = self._blocks.allocate(1).tolist()
        self._sources.append(source)
        self._targets.append(target)
        return int(target)

    def execute(self, executor: Executor) -> None:
        """Make the copies in the order of `add`: a target may be the source of a later copy."""
        if self._sources:
            sources, targets = np.array(self._sources, np.int32), np.array(self._targets, np.int32)
            executor.copy_blocks(sources, targets)
            if self._blocks.windows is not None:
                self._blocks.windows.copy(sources, targets)
            self.num_copied += len(self._sources)

    def release_sources(self) -> None:
        """Release the sources. Called before the step, also when `execute` failed."""
        if self._sources:
            sources = np.array(self._sources, np.int32)
            if self._blocks.windows is not None:
                self._blocks.windows.let_go(sources)
            self._blocks.release(sources)
            self._sources, self._targets = [], []
