"""`EventRing`: the latest events of an engine, numbered, which several readers follow independently."""

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from engine.api.events import EVENT_TYPES, Event, EventBus

CAPACITY = 4096
"""Events kept: minutes of a busy engine, under 1 MiB."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events that follow each other, oldest first.

    Attributes:
        events: the events.
        next: pass it as `since` to get the events after these.
        missed: how many events between the reader's `since` and the first of these are lost.
    """

    events: tuple[Event, ...]
    next: int
    missed: int = 0

    @classmethod
    def joined(cls, batches: Sequence["EventBatch"], since: int) -> "EventBatch":
        """What a reader that has the events before `since` gets from these batches of one ring."""
        numbered = {
            number: event
            for batch in batches
            for number, event in enumerate(batch.events, batch.next - len(batch.events))
            if number >= since
        }
        first = min(numbered, default=since)
        events = tuple(numbered[number] for number in sorted(numbered))
        return cls(events, max(numbered, default=since - 1) + 1, first - since)


class EventRing:
    """The last `capacity` events. Thread-safe.

    Event n is the n-th one appended, from 0. Appending costs one lock and one deque operation; a reader
    that is up to date costs the same.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        """An empty ring."""
        self._events: deque[Event] = deque(maxlen=capacity)
        self._next = 0
        self._lock = threading.Lock()

    def follow(self, bus: EventBus) -> None:
        """Append every event that is published from now on."""
        for kind in EVENT_TYPES:
            bus.subscribe(kind, self.append)

    def append(self, event: Event) -> None:
        """Add an event; the oldest one is dropped when the ring is full."""
        with self._lock:
            self._events.append(event)
            self._next += 1

    def skip(self, count: int) -> None:
        """Count `count` events as lost: they happened, but this ring never saw them."""
        with self._lock:
            self._events.clear()
            self._next += count

    def since(self, since: int) -> EventBatch:
        """Events `since`, `since` + 1, … as far as they are kept.

        Args:
            since: number of the first event wanted: 0, or `next` of the last batch. A number that was
                not reached yet comes from another ring, as of a server that was restarted: then the
                batch begins with the oldest event.
        """
        with self._lock:
            if since > self._next:
                since = 0
            oldest = self._next - len(self._events)
            first = max(since, oldest)
            if first == self._next:
                return EventBatch((), self._next, first - since)
            events = tuple(islice(self._events, first - oldest, None))
            return EventBatch(events, self._next, first - since)
