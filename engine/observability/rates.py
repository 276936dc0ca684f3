"""Recent figures: tokens a second over a window, and percentiles over the latest samples."""

import math

import numpy as np
from numpy.typing import NDArray

WINDOW_S = 2.0
_SLOT_S = 0.1
_SLOTS = round(WINDOW_S / _SLOT_S)


class RateWindow:
    """Tokens of the last two seconds, in slots of a tenth of a second.

    One thread adds. Any thread may ask, at any later time, and sees the figure fall to zero after
    the last step without anybody running to make it fall.
    """

    def __init__(self) -> None:
        # slot → (number of the tenth of a second it stands for, prefill tokens, decode tokens);
        # replaced as a whole, so that a reader never sees half a slot
        self._slots: list[tuple[int, int, int]] = [(-1, 0, 0)] * (_SLOTS + 1)

    def add(self, now: float, prefill: int, decode: int) -> None:
        """Count the tokens of a step that ended at `now`."""
        tick = math.floor(now / _SLOT_S)
        index = tick % len(self._slots)
        slot = self._slots[index]
        if slot[0] == tick:
            prefill, decode = slot[1] + prefill, slot[2] + decode
        self._slots[index] = (tick, prefill, decode)

    def rates(self, now: float) -> tuple[float, float]:
        """Prefill and decode tokens a second over the two seconds before `now`."""
        oldest = math.floor(now / _SLOT_S) - _SLOTS
        prefill = decode = 0
        for tick, prefilled, decoded in self._slots:
            if tick > oldest:
                prefill += prefilled
                decode += decoded
        return prefill / WINDOW_S, decode / WINDOW_S


class Speed:
    """Amounts a second, averaged over the latest ones: exponentially forgetting sums of both.

    One thread adds, any may ask.
    """

    def __init__(self, memory: float = 256 * 2**20) -> None:
        """`memory`: after this amount, what was added before counts half."""
        self._memory = memory
        self._sums = (0.0, 0.0)  # amount, seconds; replaced as a whole

    def add(self, amount: float, seconds: float) -> None:
        """Note that `amount` took so long."""
        done, spent = self._sums
        keep = 0.5 ** (amount / self._memory)
        self._sums = (done * keep + amount, spent * keep + seconds)

    @property
    def per_second(self) -> float | None:
        """The speed, or None before anything was added."""
        amount, seconds = self._sums
        return amount / seconds if seconds > 0 else None


class RecentSamples:
    """The latest 512 samples of a duration, for percentiles."""

    SIZE = 512

    def __init__(self) -> None:
        self._ring = np.zeros(self.SIZE, np.float64)
        self._added = 0

    def add(self, values: NDArray[np.float64]) -> None:
        """Add samples, the oldest giving way."""
        if not values.size:
            return
        values = values[-self.SIZE :]
        at = (self._added + np.arange(values.size)) % self.SIZE
        self._ring[at] = values
        self._added += values.size

    def percentiles(self) -> tuple[float | None, float | None]:
        """The median and the 95th percentile, or None twice without samples."""
        count = min(self._added, self.SIZE)
        if count == 0:
            return None, None
        median, high = np.percentile(self._ring[:count], (50, 95))
        return float(median), float(high)
