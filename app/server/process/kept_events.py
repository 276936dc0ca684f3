"""`KeptEvents`: the newest events of a stream, at most `KEPT_BYTES` of them; the older ones are dropped.

Events have the numbers 0, 1 and so on in the order in which they were added, dropped ones included.
"""

from collections import deque

from app.server.wire.errors import ApiError

KEPT_BYTES = 8 * 1024 * 1024
"""More than the socket buffers of a connection hold: what a client may have missed."""


class KeptEvents:
    """The events of one stream. `add` takes constant time; the newest event is kept however large it is.

    Attributes:
        count: number of events that were added.
    """

    def __init__(self) -> None:
        self.count = 0
        self._events: deque[bytes] = deque()
        self._bytes = 0

    @property
    def first(self) -> int:
        """The number of the oldest event that is kept."""
        return self.count - len(self._events)

    def __getitem__(self, number: int) -> bytes:
        """An event that is kept, `first <= number < count`."""
        return self._events[number - self.count]

    def add(self, event: bytes) -> None:
        """Append an event, and drop the oldest ones if there are too many bytes."""
        self._events.append(event)
        self._bytes += len(event)
        self.count += 1
        while self._bytes > KEPT_BYTES and len(self._events) > 1:
            self._bytes -= len(self._events.popleft())

    def check(self, number: int) -> None:
        """Refuse to read on at an event that was dropped.

        Raises:
            ApiError: 410.
        """
        if number < self.first:
            raise ApiError(
                410, "The events after this one are no longer kept.", code="events_dropped"
            )
