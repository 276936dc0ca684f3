"""Blocks that flash after an event: a shared prefix lights up once, a copied block blinks.

Pure: `Flashes` is a value that `started` and `flashing` read; time is the frame's.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.api.events import Event, PrefixHit, RequestForked
from engine.api.snapshot import BlockMap

SHARED_S = 0.8
"""How long a shared prefix is lit."""
BLINK_S = 1.5
"""How long a copied block blinks."""
BLINK_HALF_S = 0.3
"""How long it is lit, and how long not."""
MAX_FLASHES = 32


@dataclass(frozen=True, slots=True)
class _Flash:
    request_id: str
    shared: int
    copied: int | None
    since: float


@dataclass(frozen=True, slots=True)
class Flashes:
    """The flashes that have not ended."""

    running: tuple[_Flash, ...] = ()

    def started(self, events: Iterable[Event], now: float) -> "Flashes":
        """With the flashes of new events, and without those that ended before `now`."""
        running = [one for one in self.running if now - one.since < BLINK_S]
        running += [
            _Flash(event.request_id, event.blocks, event.copied_block, now)
            for event in events
            if isinstance(event, RequestForked | PrefixHit)
        ]
        return replace(self, running=tuple(running[-MAX_FLASHES:]))

    def flashing(self, blocks: BlockMap, now: float, *, still: bool = False) -> NDArray[np.int32]:
        """[F] int32, blocks that are lit at `now`.

        Args:
            blocks: the map, which tells the blocks of a request.
            now: the frame's time.
            still: nothing blinks: copied blocks are lit like shared ones.
        """
        lit: list[NDArray[np.int32]] = []
        for flash in self.running:
            age = now - flash.since
            if age < SHARED_S:
                lit.append(blocks.blocks_of(flash.request_id)[: flash.shared])
            is_lit = age < SHARED_S if still else int(age / BLINK_HALF_S) % 2 == 0
            if flash.copied is not None and flash.copied < len(blocks.state) and is_lit:
                lit.append(np.array([flash.copied], np.int32))
        return np.unique(np.concatenate(lit)) if lit else np.zeros(0, np.int32)
