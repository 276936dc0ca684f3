"""ULIDs: 26-character ids that sort by creation time (48 bits of milliseconds, 80 random bits).

The ids of one process are strictly increasing, also within a millisecond, so nodes sort in order of
creation.
"""

import secrets
import threading
import time
from collections.abc import Callable

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: no I, L, O, U
_RANDOM_BITS = 80
_LENGTH = 26


def encode(value: int) -> str:
    """The 26 characters of a 128-bit number."""
    return "".join(_ALPHABET[(value >> (5 * i)) & 31] for i in reversed(range(_LENGTH)))


class UlidFactory:
    """Creates increasing ULIDs. Thread-safe.

    Args:
        clock: seconds since the epoch.
        random_bits: returns an integer of that many random bits.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        random_bits: Callable[[int], int] = secrets.randbits,
    ) -> None:
        self._clock = clock
        self._random_bits = random_bits
        self._last = 0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        """A new id, greater than every earlier one of this factory."""
        with self._lock:
            fresh = (int(self._clock() * 1000) << _RANDOM_BITS) | self._random_bits(_RANDOM_BITS)
            # Keep the order if the clock stands still or goes back.
            self._last = fresh if fresh > self._last else self._last + 1
            return encode(self._last)


new_ulid = UlidFactory()
"""The factory of this process."""
