"""`PoolEvents`: publishes evictions and swap-outs as sums over a period.

The pool counts both anyway; here the counts are compared when a snapshot is published, so that a step
that evicts costs nothing more.
"""

from engine.api.events import BlocksEvicted, BlocksSwappedOut, EventBus
from engine.memory.block_manager import BlockManager

PERIOD_S = 0.5
"""Minimum time between two sums; a full pool evicts in nearly every step."""


class PoolEvents:
    """Compares the pool's counters with those at the last publication. Engine's thread only."""

    def __init__(self, events: EventBus) -> None:
        """Publish to `events`."""
        self._events = events
        self._published_at = float("-inf")
        self._evicted = 0
        self._dropped = 0
        self._swapped_out = 0

    def observe(self, blocks: BlockManager, now: float, *, idle: bool) -> None:
        """Publish what changed, at most every `PERIOD_S`, or at once if the engine is `idle`."""
        tier = blocks.tier
        evicted = blocks.num_evicted
        dropped = 0 if tier is None else tier.dropped
        swapped_out = 0 if tier is None else tier.swapped_out
        if (evicted, swapped_out) == (self._evicted, self._swapped_out):
            return
        if not idle and now - self._published_at < PERIOD_S:
            return
        self._published_at = now
        if evicted > self._evicted:
            lost = dropped - self._dropped
            self._events.publish(BlocksEvicted(now, evicted - self._evicted, lost))
        if swapped_out > self._swapped_out:
            self._events.publish(BlocksSwappedOut(now, swapped_out - self._swapped_out))
        self._evicted, self._dropped, self._swapped_out = evicted, dropped, swapped_out
