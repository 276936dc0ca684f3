"""`RequestQueue`: the bounded, unordered queue of requests that have no row yet.

Any thread may call `put`; only the engine's thread removes requests. The limit applies to `put` only:
preempted sequences are requeued regardless of it, because their requests were accepted already.

The queue stores one record of `REQUEST_DTYPE` per request in a dense array, so that a policy orders
thousands of requests in a few numpy calls (`engine.scheduler.ordering`).
"""

import threading
from collections.abc import Iterator
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from engine.api.errors import QueueFull
from engine.batch.request_record import REQUEST_DTYPE, WaitingColumns
from engine.batch.sequence import NOT_QUEUED, Sequence

_INITIAL_CAPACITY = 64


class RequestQueue:
    """Waiting sequences, each at an index in [0, len).

    Cost: `put`, `requeue`, `pop` and `remove` are O(1). Removing a sequence moves the last one to its
    index, so indices are valid only until the next removal.

    Attributes:
        num_changes: requests that were added or removed so far.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: list[Sequence] = []
        self._records: NDArray[np.void] = np.zeros(_INITIAL_CAPACITY, REQUEST_DTYPE)
        self._lock = threading.Lock()
        self.num_changes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Sequence]:
        """By arrival, oldest first: O(n log n)."""
        with self._lock:
            return iter(sorted(self._waiting, key=attrgetter("arrival")))

    def put(self, *sequences: Sequence) -> None:
        """Add new requests, all or none.

        Raises:
            QueueFull: more than `limit` requests would be waiting.
        """
        with self._lock:
            if len(self._waiting) + len(sequences) > self._limit:
                raise QueueFull(
                    f"The queue is full: {len(self._waiting)} of {self._limit} requests are "
                    "waiting; try again later."
                )
            for sequence in sequences:
                self._add(sequence)

    def requeue(self, sequence: Sequence) -> None:
        """Put a popped or preempted sequence back, regardless of the limit."""
        with self._lock:
            self._add(sequence)

    def columns(self) -> WaitingColumns:
        """The records of all waiting requests, by index. Engine's thread only."""
        with self._lock:
            return WaitingColumns.of(self._records[: len(self._waiting)])

    def at(self, queue_index: int) -> Sequence:
        """The sequence at an index."""
        return self._waiting[queue_index]

    def pop(self, queue_index: int) -> Sequence:
        """Remove and return the sequence at an index. Engine's thread only."""
        with self._lock:
            return self._take(queue_index)

    def remove(self, sequence: Sequence) -> bool:
        """Remove a sequence; False if it is not in the queue."""
        with self._lock:
            if sequence.queue_index == NOT_QUEUED:
                return False
            self._take(sequence.queue_index)
            return True

    def hold(self, held: NDArray[np.bool_]) -> None:
        """Mark requests as held, all others as not. Engine's thread only.

        Args:
            held: [n] bool, by index, of the requests that waited when it was made; those that came since
                keep their marks.
        """
        with self._lock:
            self._records["held"][: len(held)] = held

    def _add(self, sequence: Sequence) -> None:
        index = len(self._waiting)
        if index == len(self._records):
            # A new array, because the engine's thread may be reading the old one.
            self._records = np.concatenate([self._records, np.zeros_like(self._records)])
        sequence.update_record()
        self._records[index] = sequence.record
        sequence.queue_index = index
        self._waiting.append(sequence)
        self.num_changes += 1

    def _take(self, index: int) -> Sequence:
        sequence, last = self._waiting[index], self._waiting.pop()
        if last is not sequence:
            self._records[index] = self._records[len(self._waiting)]
            self._waiting[index] = last
            last.queue_index = index
        sequence.queue_index = NOT_QUEUED
        self.num_changes += 1
        return sequence
