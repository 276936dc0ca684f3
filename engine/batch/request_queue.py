"""`RequestQueue`: the bounded line of requests that have no row yet.

Any thread may `put`; the engine's thread takes. Preempted sequences come back and do not count
against the bound, because their requests were accepted already.

The line has no order of its own: it keeps one record of `LINE_DTYPE` for each request, dense, so
that a policy finds the best of thousands in a few numpy calls (`engine.scheduler.ranking`).
"""

import threading
from collections.abc import Iterator
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from engine.api.errors import QueueFull
from engine.batch.sequence import NOT_IN_LINE, Sequence
from engine.batch.waiting_columns import LINE_DTYPE, Line

_FIRST_CAPACITY = 64


class RequestQueue:
    """Waiting sequences, each at a place in [0, len).

    Cost: `put`, `requeue`, `pop` and `remove` are O(1); what leaves is replaced by the last, so
    places change whenever something leaves.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: list[Sequence] = []
        self._facts: NDArray[np.void] = np.zeros(_FIRST_CAPACITY, LINE_DTYPE)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Sequence]:
        """Oldest first."""
        with self._lock:
            return iter(sorted(self._waiting, key=attrgetter("arrival")))

    def put(self, sequence: Sequence) -> None:
        """Add a new request.

        Raises:
            QueueFull: as many requests wait as the queue holds.
        """
        with self._lock:
            if len(self._waiting) >= self._limit:
                raise QueueFull(
                    f"The queue is full: {self._limit} requests are waiting; try again later."
                )
            self._add(sequence)

    def requeue(self, sequence: Sequence) -> None:
        """Put a sequence back that was popped or preempted, whatever the bound."""
        with self._lock:
            self._add(sequence)

    def line(self) -> Line:
        """The facts of all that wait, by place. Engine's thread only."""
        with self._lock:
            facts = self._facts[: len(self._waiting)]
        return Line(
            arrival=facts["arrival"],
            priority=facts["priority"],
            queued_at=facts["queued_at"],
            deadline=facts["deadline"],
            prefill=facts["prefill"],
            cached=facts["cached"],
            answer=facts["answer"],
            begun=facts["begun"],
        )

    def at(self, place: int) -> Sequence:
        """The sequence at a place."""
        return self._waiting[place]

    def pop(self, place: int) -> Sequence:
        """Take the sequence at a place. Engine's thread only."""
        with self._lock:
            return self._take(place)

    def remove(self, sequence: Sequence) -> bool:
        """Take a sequence out wherever it stands; False if it does not wait."""
        with self._lock:
            if sequence.place == NOT_IN_LINE:
                return False
            self._take(sequence.place)
            return True

    def _add(self, sequence: Sequence) -> None:
        place = len(self._waiting)
        if place == len(self._facts):
            # A new array: the engine's thread may be reading the old one.
            self._facts = np.concatenate([self._facts, np.zeros_like(self._facts)])
        count = len(sequence.tokens)
        self._facts[place] = (
            sequence.arrival,
            sequence.request.priority,
            sequence.queued_at,
            sequence.deadline,
            count - min(sequence.likely_cached, count - 1),
            sequence.likely_cached,
            sequence.max_total - count,
            sequence.begun,
        )
        sequence.place = place
        self._waiting.append(sequence)

    def _take(self, place: int) -> Sequence:
        sequence, last = self._waiting[place], self._waiting.pop()
        if last is not sequence:
            self._facts[place] = self._facts[len(self._waiting)]
            self._waiting[place] = last
            last.place = place
        sequence.place = NOT_IN_LINE
        return sequence
