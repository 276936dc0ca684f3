"""`ReleaseTimes`: when each block was last released, in seconds.

The allocator counts changes (epochs) instead of reading a clock. A sample of (epoch, time) is kept with every
snapshot that is published, and the time of an epoch between two samples is interpolated: exact to the period
between snapshots, and free for a step.
"""

import numpy as np
from numpy.typing import NDArray

from engine.api.snapshot import BlockState

MAX_SAMPLES = 512


class ReleaseTimes:
    """Samples of one pool's epochs, and the last known times of its blocks. Engine's thread only."""

    def __init__(self) -> None:
        """No samples."""
        self._epochs: list[int] = []
        self._times: list[float] = []
        self._released_at: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._last_used: NDArray[np.float64] = np.zeros(0)

    def note(self, epoch: int, now: float) -> None:
        """Record that the pool's epoch is `epoch` now."""
        if self._epochs and self._epochs[-1] == epoch:
            return
        if len(self._epochs) == MAX_SAMPLES:
            # Every second sample goes, so that old times become coarse and are not lost.
            self._epochs, self._times = self._epochs[::2], self._times[::2]
        self._epochs.append(epoch)
        self._times.append(now)

    def last_used(
        self, released_at: NDArray[np.uint64], states: NDArray[np.uint8]
    ) -> NDArray[np.float64]:
        """[blocks] float64, when each block was last released; NaN while it is in use, or for never.

        A time that was returned once does not change until the block is released again.

        Args:
            released_at: [blocks] uint64, epochs.
            states: [blocks] uint8, values of `BlockState`.
        """
        if len(self._released_at) != len(released_at):
            self._released_at = np.zeros(len(released_at), np.uint64)
            self._last_used = np.full(len(released_at), np.nan)
        changed = np.flatnonzero(released_at != self._released_at)
        if changed.size and self._epochs:
            epochs = released_at[changed].astype(np.float64)
            self._last_used[changed] = np.interp(epochs, self._epochs, self._times)
            self._released_at = released_at.copy()
        return np.where(states == BlockState.ACTIVE, np.nan, self._last_used)
