"""`EventLog`: the append-only events of one run, read by any number of followers.

Appended to on the event loop's thread, read from any thread. Followers keep their own position; nothing is
dropped.
"""

import time
from collections.abc import Callable
from typing import Any

from agents.api.events import RunEvent, RunEventType

Follower = Callable[[RunEvent], None]


class EventLog:
    """The events of one run."""

    def __init__(
        self, run: str, *, parent: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        self._run = run
        self._parent = parent
        self._clock = clock
        self._events: list[RunEvent] = []
        self._followers: list[Follower] = []

    @property
    def run(self) -> str:
        """The run's id."""
        return self._run

    def __len__(self) -> int:
        return len(self._events)

    def append(
        self, kind: RunEventType, *, node: str = "", agent: str = "", **data: Any
    ) -> RunEvent:
        """Add an event and tell the followers."""
        event = RunEvent(
            len(self._events), self._clock(), self._run, kind, node, agent, self._parent, data
        )
        self._events.append(event)
        for follower in tuple(self._followers):
            follower(event)
        return event

    def since(self, sequence: int) -> list[RunEvent]:
        """The events from number `sequence` on."""
        return self._events[sequence:]

    def follow(self, follower: Follower) -> Callable[[], None]:
        """Call `follower` for every event from now on, on the appending thread; returns how to stop."""
        self._followers.append(follower)
        return lambda: self._followers.remove(follower)
