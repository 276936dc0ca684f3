"""`RequestQueue`: the bounded line of requests that have no row yet.

Any thread may `put`; the engine's thread takes. Preempted sequences come back to the front and do
not count against the bound, because their requests were accepted already.
"""

import threading
from collections import deque
from collections.abc import Iterator

from engine.errors import QueueFull
from engine.pipeline.sequence import Sequence


class RequestQueue:
    """Waiting sequences, oldest first.

    Cost: `put`, `requeue` and `pop` at the front are O(1); `remove` is O(waiting).
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: deque[Sequence] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Sequence]:
        with self._lock:
            return iter(tuple(self._waiting))

    def put(self, sequence: Sequence) -> None:
        """Add a new request at the end.

        Raises:
            QueueFull: as many requests wait as the queue holds.
        """
        with self._lock:
            if len(self._waiting) >= self._limit:
                raise QueueFull(
                    f"The queue is full: {self._limit} requests are waiting; try again later."
                )
            self._waiting.append(sequence)

    def requeue(self, sequence: Sequence) -> None:
        """Put a preempted sequence back, before everything that never ran."""
        with self._lock:
            self._waiting.appendleft(sequence)

    def at(self, index: int) -> Sequence:
        """The sequence at a place in line."""
        return self._waiting[index]

    def pop(self, index: int) -> Sequence:
        """Take the sequence at a place in line. Engine's thread only."""
        with self._lock:
            if index == 0:
                return self._waiting.popleft()
            sequence = self._waiting[index]
            del self._waiting[index]
            return sequence

    def remove(self, sequence: Sequence) -> bool:
        """Take a sequence out wherever it stands; False if it does not wait."""
        with self._lock:
            try:
                self._waiting.remove(sequence)
            except ValueError:
                return False
            return True
