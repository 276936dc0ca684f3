"""Rates and percentiles of the recent past: tokens per second, copying speed, latency percentiles."""

import math

import numpy as np
from numpy.typing import NDArray

WINDOW_S = 2.0
_SLOT_S = 0.1
_SLOTS = round(WINDOW_S / _SLOT_S)


class RateWindow:
    """Tokens of the last `WINDOW_S` seconds, in a ring of slots of a tenth of a second.

    One thread adds; any thread may read. Rates are computed at the reader's instant, so they fall to
    zero after the last step without a timer.
    """

    def __init__(self) -> None:
        # slot → (tick, prefill tokens, decode tokens), where a tick is a tenth of a second;
        # a slot is replaced as a whole, so that a reader never sees a partial update
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
        """Prefill and decode tokens per second over the two seconds before `now`."""
        oldest = math.floor(now / _SLOT_S) - _SLOTS
        prefill = decode = 0
        for tick, prefilled, decoded in self._slots:
            if tick > oldest:
                prefill += prefilled
                decode += decoded
        return prefill / WINDOW_S, decode / WINDOW_S


class Speed:
    """An amount per second, as the ratio of exponentially decaying sums of amount and seconds.

    One thread adds; any thread may read.
    """

    def __init__(self, half_life: float = 256 * 2**20) -> None:
        """`half_life`: amount after which the weight of earlier samples is halved."""
        self._half_life = half_life
        self._sums = (0.0, 0.0)  # amount, seconds; replaced as a whole

    def add(self, amount: float, seconds: float) -> None:
        """Add the sample that `amount` took `seconds`."""
        done, spent = self._sums
        decay = 0.5 ** (amount / self._half_life)
        self._sums = (done * decay + amount, spent * decay + seconds)

    @property
    def per_second(self) -> float | None:
        """The speed; None before the first sample."""
        amount, seconds = self._sums
        return amount / seconds if seconds > 0 else None


class RecentSamples:
    """A ring buffer of the latest 512 durations, for percentiles."""

    SIZE = 512

    def __init__(self) -> None:
        self._ring = np.zeros(self.SIZE, np.float64)
        self._added = 0

    def add(self, values: NDArray[np.float64]) -> None:
        """Add samples, [N] float64; they overwrite the oldest ones."""
        if not values.size:
            return
        values = values[-self.SIZE :]
        at = (self._added + np.arange(values.size)) % self.SIZE
        self._ring[at] = values
        self._added += values.size

    def percentiles(self) -> tuple[float | None, float | None]:
        """The median and the 95th percentile; (None, None) without samples."""
        count = min(self._added, self.SIZE)
        if count == 0:
            return None, None
        median, high = np.percentile(self._ring[:count], (50, 95))
        return float(median), float(high)
