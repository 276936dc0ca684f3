"""`Histogram`: a histogram with fixed buckets that takes arrays of observations.

All bucket bounds but `SECONDS_STEP` are those of vLLM, so that its dashboards apply.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SECONDS_TTFT = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
SECONDS_INTER_TOKEN = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0),
)
SECONDS_REQUEST = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
SECONDS_STEP = (
    *(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
TOKENS_STEP = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
TOKENS_REQUEST = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000),
)


@dataclass(frozen=True, slots=True)
class HistogramState:
    """A histogram at one instant.

    Attributes:
        bounds: [B] upper bounds, inclusive.
        counts: [B + 1] int64, observations per bucket, not cumulative; the last bucket is +Inf.
        total: sum of the observations.
    """

    bounds: tuple[float, ...]
    counts: NDArray[np.int64]
    total: float

    @property
    def count(self) -> int:
        """Number of observations."""
        return int(self.counts.sum())


class Histogram:
    """A histogram with fixed buckets. Not thread-safe: its owner holds a lock."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._edges = np.array(bounds, np.float64)
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self._total = 0.0

    def observe(self, value: float) -> None:
        """Count one observation."""
        self._counts[self._edges.searchsorted(value)] += 1
        self._total += value

    def observe_all(self, values: NDArray[np.float64]) -> None:
        """Count many observations at once."""
        if values.size:
            buckets = self._edges.searchsorted(values)
            self._counts += np.bincount(buckets, minlength=len(self._counts))
            self._total += float(values.sum())

    def state(self) -> HistogramState:
        """An immutable copy."""
        return HistogramState(self._bounds, self._counts.copy(), self._total)
