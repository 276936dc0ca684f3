"""`EngineHistory`: what the panes saw of the engine in the last minutes, to go back in time.

It stands between the panes and the client and keeps what it passes on: snapshots, block maps as changes to
the map before, events, steps, plans and request tables. Cost: references, and for a block map the changed
elements. Bounded by `SECONDS` and, for block maps, by `MAX_CHANGED` elements.
"""

from collections import deque
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from engine.api.event_ring import EventBatch
from engine.api.events import Event
from engine.api.snapshot import BlockMap, EngineSnapshot
from engine.clients.engine_client import EngineClient

SECONDS = 180.0
"""How far back one can go."""
MAX_CHANGED = 4_000_000
"""Elements of changed arrays that are kept, about 20 MB."""
_KEPT = ("request_table", "planned_step", "prefix_tree")
"""Calls whose last results are shown as they were."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A block map as a change of the next older one, or the oldest map itself."""

    time: float
    before: dict[str, Any]
    """The older values: whole fields, or for arrays the changed indices and what stood there."""
    size: int


class EngineHistory:
    """An `EngineClient` for panes. `past` gives one that shows an earlier instant.

    Args:
        client: the engine.
    """

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self._now = 0.0
        self._snapshots: deque[tuple[float, EngineSnapshot]] = deque()
        self._blocks: BlockMap | None = None
        self._changes: deque[_Change] = deque()  # newest last
        self._changed = 0
        self._events: deque[Event] = deque(maxlen=4096)
        self._next_event = 0
        self._kept: dict[str, deque[tuple[float, Any]]] = {name: deque() for name in _KEPT}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def add(self, now: float, snapshot: EngineSnapshot) -> None:
        """Begin a frame at `now`, monotonic seconds."""
        self._now = now
        self._snapshots.append((now, snapshot))
        oldest = now - SECONDS
        while self._snapshots[0][0] < oldest:
            self._snapshots.popleft()
        while self._changes and (self._changes[0].time < oldest or self._changed > MAX_CHANGED):
            self._changed -= self._changes.popleft().size
        for ring in self._kept.values():
            while ring and ring[0][0] < oldest:
                ring.popleft()

    @property
    def oldest(self) -> float:
        """The earliest instant that can be shown."""
        return self._snapshots[0][0] if self._snapshots else self._now

    @property
    def now(self) -> float:
        """The instant of the newest frame."""
        return self._now

    def past(self, time: float) -> "PastEngine":
        """The engine as it was shown at an earlier instant."""
        return PastEngine(self, time)

    # What panes read: passed on and kept.

    def blocks(self, since: int) -> BlockMap | None:
        """The KV blocks, or None if nothing changed after epoch `since`."""
        blocks = self._client.blocks(since)
        if blocks is not None and (self._blocks is None or blocks.epoch != self._blocks.epoch):
            if self._blocks is not None:
                before, size = _older_values(self._blocks, blocks)
                self._changes.append(_Change(self._now, before, size))
                self._changed += size
            self._blocks = blocks
        return blocks

    def events(self, since: int) -> EventBatch:
        """The events from number `since` on."""
        batch = self._client.events(since)
        first = batch.next - len(batch.events)
        if batch.next > self._next_event:
            self._events.extend(batch.events[max(0, self._next_event - first) :])
            self._next_event = batch.next
        return batch

    def request_table(self) -> Any:
        """The live requests."""
        return self._keep("request_table")

    def planned_step(self) -> Any:
        """The plan of a recent step."""
        return self._keep("planned_step")

    def prefix_tree(self) -> Any:
        """The prefix cache as chains."""
        return self._keep("prefix_tree")

    def _keep(self, name: str) -> Any:
        result = getattr(self._client, name)()
        ring = self._kept[name]
        if not ring or ring[-1][1] != result:
            ring.append((self._now, result))
        return result

    # What `PastEngine` reads.

    def snapshot_at(self, time: float) -> EngineSnapshot:
        """The last snapshot that was taken until `time`."""
        found = self._snapshots[0][1]
        for at, snapshot in self._snapshots:
            if at > time:
                break
            found = snapshot
        return found

    def blocks_at(self, time: float) -> BlockMap | None:
        """The block map as it was shown at `time`."""
        blocks = self._blocks
        for change in reversed(self._changes):
            if change.time <= time or blocks is None:
                break
            blocks = _restored(blocks, change.before)
        return blocks

    def kept_at(self, name: str, time: float) -> Any:
        """The last result of a call until `time`; None if there is none."""
        found = None
        for at, result in self._kept[name]:
            if at > time:
                break
            found = result
        return found

    def events_until(self, time: float) -> tuple[Event, ...]:
        """The kept events up to an instant on the clock of `EngineSnapshot.time`."""
        return tuple(event for event in self._events if event.time <= time)


class PastEngine:
    """The reading part of an `EngineClient`, as of an earlier instant."""

    def __init__(self, history: EngineHistory, time: float) -> None:
        self._history = history
        self._time = time

    def __getattr__(self, name: str) -> Any:
        return getattr(self._history, name)

    def snapshot(self) -> EngineSnapshot:
        """The engine as it was."""
        return self._history.snapshot_at(self._time)

    def blocks(self, since: int) -> BlockMap | None:
        """The blocks as they were, or None if the reader has this map."""
        blocks = self._history.blocks_at(self._time)
        return None if blocks is None or blocks.epoch == since else blocks

    def events(self, since: int) -> EventBatch:
        """Nothing: a reader has followed the events already."""
        return EventBatch((), since)

    def recent_steps(self, since: int) -> tuple[Any, ...]:
        """The steps up to that instant."""
        until = self.snapshot().time
        steps = self._history.recent_steps(since)
        return tuple(step for step in steps if step.started <= until)

    def request_table(self) -> Any:
        """The requests as they were."""
        return self._history.kept_at("request_table", self._time) or ()

    def planned_step(self) -> Any:
        """The plan as it was."""
        return self._history.kept_at("planned_step", self._time)

    def prefix_tree(self) -> Any:
        """The prefix cache as it was."""
        return self._history.kept_at("prefix_tree", self._time)

    def block(self, block: int) -> None:
        """Nothing: what a block held is not kept."""


def as_client(engine: EngineHistory | PastEngine) -> EngineClient:
    """The same object with the type that panes know."""
    return cast("EngineClient", engine)


def _older_values(old: BlockMap, new: BlockMap) -> tuple[dict[str, Any], int]:
    """What stood in `old` where `new` differs, and the number of array elements in it."""
    before: dict[str, Any] = {}
    size = 0
    for field in fields(BlockMap):
        was, now = getattr(old, field.name), getattr(new, field.name)
        if isinstance(was, np.ndarray) and was.shape == now.shape:
            at = _different(was, now)
            if len(at):
                before[field.name] = (at, was[at])
                size += 2 * len(at)
        elif isinstance(was, np.ndarray) or was != now:
            before[field.name] = was
            size += np.size(was)
    return before, size


def _different(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.int64]:
    """The indices of elements that differ; NaN equals NaN."""
    both_nan = (one != one) & (other != other)
    return np.flatnonzero((one != other) & ~both_nan)


def _restored(blocks: BlockMap, before: dict[str, Any]) -> BlockMap:
    values: dict[str, Any] = {}
    for field in fields(BlockMap):
        value = getattr(blocks, field.name)
        older = before.get(field.name, value)
        if isinstance(older, tuple) and isinstance(value, np.ndarray):
            at, was = older
            value = value.copy()
            value[at] = was
        else:
            value = older
        values[field.name] = value
    return BlockMap(**values)
