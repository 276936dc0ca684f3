"""Sparklines: a ring of one-second samples and its drawing in eighth blocks."""

from collections import deque
from collections.abc import Sequence

RING_SECONDS = 120
"""Samples a ring keeps, one a second."""


class SampleRing:
    """The last `RING_SECONDS` values of one figure, oldest first; one sample a second of `now`.

    Time is passed in. Seconds without a call count as zero, so that the time axis stays true.
    """

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=RING_SECONDS)
        self._second: int | None = None

    def add(self, now: float, value: float) -> bool:
        """Record `value` for the second of `now`; True when a new sample began."""
        second = int(now)
        if self._second is None or second - self._second > RING_SECONDS:
            self._values.clear()
            self._second = second
            self._values.append(value)
            return True
        missed = second - self._second
        if missed <= 0:
            self._values[-1] = max(self._values[-1], value)
            return False
        self._values.extend([0.0] * (missed - 1))
        self._values.append(value)
        self._second = second
        return True

    @property
    def values(self) -> tuple[float, ...]:
        """Samples, oldest first."""
        return tuple(self._values)


def build_spark(values: Sequence[float], width: int, height: int, ramp: str) -> list[str]:
    """`height` text rows of the newest `width` values, scaled to their own maximum.

    Args:
        ramp: glyphs from empty to full, `app.tui.glyphs.Glyphs.spark`.
    """
    shown = list(values[-width:]) if width > 0 else []
    top = max(shown, default=0.0)
    levels = len(ramp) - 1
    rows = []
    for row in range(height - 1, -1, -1):
        cells = []
        for value in shown:
            filled = round(value / top * levels * height) if top > 0 else 0
            if value > 0 and filled == 0:
                filled = 1
            cells.append(ramp[max(0, min(levels, filled - row * levels))])
        rows.append("".join(cells).rjust(width, ramp[0]))
    return rows
