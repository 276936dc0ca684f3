"""`StateCheckpoints`: recurrent states kept at block borders, each at a node of the prefix trie.

A checkpoint is the state after the last token of an indexed block, in a slot of its own. Together with the KV
blocks up to there it is all that a sequence needs to continue from that token.

Invariants: a block has at most one checkpoint, and the checkpoint of a block that was evicted is dropped by
`drop_evicted`, which the block manager calls after every allocation that evicted blocks. A block's generation
tells that it was allocated again, so that its checkpoint is of other tokens.

Which checkpoint is dropped for another is decided by *GreedyDual* (Cao and Irani 1997): a checkpoint's
priority is the seconds that it saves, plus the priority of the checkpoint that was last dropped when it was
made or used last. The seconds are those to compute its tokens again from the nearest checkpoint above it,
times `INNER_WEIGHT` if exactly one checkpoint follows it: the next turn of a conversation begins at the last
checkpoint of a path, and a third prompt where two parted; those between serve forks of the past alone. All
have the same size.

Cost: finding one is one numpy expression over the blocks of a path; dropping one is a pass over all of them,
of which there are some hundreds at most.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.memory.allocator import Allocator

NO_ROW = -1
INNER_WEIGHT = 0.1
"""Of what a checkpoint saves that exactly one other one follows. Eight sessions of an agent that take turns
in 24 slots compute 1.4 tokens for each new one with it, 2.1 without it, and 4.6 if the least recently used
checkpoint is dropped (`test_sessions_that_take_turns_keep_their_last_states`)."""
NOMINAL_TOKEN_S = 1e-3
"""Seconds to compute a token while the step-time model is not fitted; only ratios matter then."""


@dataclass(slots=True, eq=False)
class Checkpoint:
    """A kept state.

    Attributes:
        block: the block after whose last token it is.
        generation: that of the block.
        slot: the slot that holds it.
        tokens: number of tokens up to there.
        key: identifies salt and tokens, for the state store; empty without a prefix cache.
        parent: the nearest checkpoint above it when it was made, or that one's parent once it was dropped.
        num_children: checkpoints of which it is the parent.
        used_at: priority of the checkpoint that was last dropped when it was made or used last.
        seconds: predicted time to compute its tokens from its parent on.
        row: the running row whose *tail* it is: the row's next checkpoint takes its slot. `NO_ROW` for a
            checkpoint that stays.
        saved: whether the state store has it, or is writing it.
    """

    block: int
    generation: int
    slot: int
    tokens: int
    key: bytes
    parent: "Checkpoint | None" = field(repr=False)
    num_children: int = 0
    used_at: float = 0.0
    seconds: float = 0.0
    row: int = NO_ROW
    saved: bool = False

    @property
    def priority(self) -> float:
        """The one with the lowest is dropped next; see the module."""
        weight = INNER_WEIGHT if self.num_children == 1 else 1.0
        return self.used_at + weight * self.seconds


class StateCheckpoints:
    """The checkpoints of one pool. Changed by the engine's thread only; any thread may call `find`.

    Attributes:
        recompute_seconds: predicts the seconds to compute tokens behind others; None if unknown.
        num_evicted: checkpoints dropped for others or with their blocks.
    """

    def __init__(self, allocator: Allocator) -> None:
        """No checkpoints of the allocator's blocks."""
        self._allocator = allocator
        self._by_block: dict[int, Checkpoint] = {}
        self._has: NDArray[np.bool_] = np.zeros(allocator.num_blocks, np.bool_)
        self._clock = 0.0
        self.recompute_seconds: Callable[[int, int], float | None] = _unknown
        self.num_evicted = 0

    def __len__(self) -> int:
        return len(self._by_block)

    def __iter__(self) -> Iterator[Checkpoint]:
        return iter(self._by_block.values())

    def at(self, block: int) -> Checkpoint | None:
        """The checkpoint of a block."""
        return self._by_block.get(block)

    def blocks(self) -> NDArray[np.int32]:
        """[C] int32, the blocks that have one, ascending."""
        return np.flatnonzero(self._has).astype(np.int32)

    def find(self, path: NDArray[np.int32]) -> Checkpoint | None:
        """The deepest checkpoint on a path of indexed blocks, given from the first one on. Any thread."""
        found = np.flatnonzero(self._has[path])
        return None if not found.size else self._by_block.get(int(path[found[-1]]))

    def add(
        self, block: int, slot: int, tokens: int, key: bytes, path: NDArray[np.int32]
    ) -> Checkpoint:
        """Record a checkpoint of an indexed block that has none.

        Args:
            block: the block.
            slot: holds the state.
            tokens: number of tokens up to the block's end.
            key: see `Checkpoint`.
            path: [B] int32, the blocks above it.
        """
        if block in self._by_block:
            raise AssertionError(f"block {block} has a checkpoint already")
        generation = int(self._allocator.generations()[block])
        added = Checkpoint(block, generation, slot, tokens, key, self.find(path))
        if added.parent is not None:
            added.parent.num_children += 1
        self._by_block[block] = added
        self._has[block] = True
        self.touch(added)
        return added

    def touch(self, checkpoint: Checkpoint) -> None:
        """Record that a checkpoint was made or used now."""
        checkpoint.used_at = self._clock
        checkpoint.seconds = self.price(checkpoint.tokens, checkpoint.parent)

    def price(self, tokens: int, parent: Checkpoint | None) -> float:
        """Seconds that a checkpoint after `tokens` tokens saves, with `parent` as the next one above it."""
        above = 0 if parent is None else parent.tokens
        seconds = self.recompute_seconds(tokens - above, above)
        return (tokens - above) * NOMINAL_TOKEN_S if seconds is None else seconds

    def is_worth(self, tokens: int, path: NDArray[np.int32], victim: Checkpoint) -> bool:
        """Whether a checkpoint after `tokens` tokens on this path is worth more than another one."""
        return self._clock + self.price(tokens, self.find(path)) > victim.priority

    def cheapest(self, but: Collection[Checkpoint] = ()) -> Checkpoint | None:
        """The checkpoint that is dropped next, other than those in `but`: of pinned blocks last."""
        pins = self._allocator.pins()
        others = (one for one in self if one not in but)
        return min(others, key=lambda one: (pins[one.block] > 0, one.priority), default=None)

    def by_price(self) -> list[Checkpoint]:
        """All checkpoints in the order in which they would be dropped: of pinned blocks last."""
        pins = self._allocator.pins()
        return sorted(self, key=lambda one: (pins[one.block] > 0, one.priority))

    def evict(self, checkpoint: Checkpoint) -> None:
        """Drop a checkpoint for another one; those below it gain what they save more from now on."""
        self._clock = max(self._clock, checkpoint.priority)
        self.num_evicted += 1
        self.drop(checkpoint)

    def drop(self, checkpoint: Checkpoint) -> None:
        """Drop a checkpoint; its slot belongs to the caller."""
        if self._by_block.pop(checkpoint.block) is not checkpoint:
            raise AssertionError(f"block {checkpoint.block} has another checkpoint")
        self._has[checkpoint.block] = False
        parent = checkpoint.parent
        if parent is not None:
            parent.num_children += checkpoint.num_children - 1
        if not checkpoint.num_children:
            return
        for below in self:
            if below.parent is checkpoint:
                below.parent = parent
                below.seconds = self.price(below.tokens, parent)

    def drop_evicted(self) -> list[Checkpoint]:
        """Drop the checkpoints of blocks that were allocated again, the deepest first.

        Their slots belong to the caller.
        """
        if not self._by_block:
            return []
        generations = self._allocator.generations()
        gone = [one for one in self if generations[one.block] != one.generation]
        gone.sort(key=lambda one: -one.tokens)
        for checkpoint in gone:
            self.num_evicted += 1
            self.drop(checkpoint)
        return gone

    def check_integrity(self) -> None:
        """Raise if an invariant is violated; for tests.

        Raises:
            AssertionError: a checkpoint is of an evicted block, or the index of blocks is wrong.
        """
        generations = self._allocator.generations()
        children = Counter(id(one.parent) for one in self)
        for block, one in self._by_block.items():
            if children[id(one)] != one.num_children:
                raise AssertionError(
                    f"the checkpoint of block {block} has a wrong count of children"
                )
            if one.block != block or generations[block] != one.generation:
                raise AssertionError(f"block {block} was evicted, but has a checkpoint")
            if one.parent is not None and one.parent.tokens >= one.tokens:
                raise AssertionError(f"the checkpoint of block {block} is not below its parent")
            if one.parent is not None and self._by_block.get(one.parent.block) is not one.parent:
                raise AssertionError(f"the parent of the checkpoint of block {block} was dropped")
        if set(np.flatnonzero(self._has).tolist()) != set(self._by_block):
            raise AssertionError("the index of blocks with checkpoints is wrong")


def _unknown(*_: int) -> None:
    return None
