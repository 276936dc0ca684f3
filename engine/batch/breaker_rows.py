"""`BreakerRows`: the sequence breakers of the rows with a DRY penalty, as arrays of a `StepPlan`.

Rows with equal breakers, usually all, share one range of the arrays. Not called within steps: the arrays
change when a request is placed. Engine's thread only.
"""

import numpy as np
from numpy.typing import NDArray

from engine.executors.base import NO_BREAKER_HEADS, NO_BREAKER_TAILS
from engine.text.sequence_breakers import SequenceBreakers


class BreakerRows:
    """Writes `first_breaker` and `num_breakers` of the rows' sampling parameters.

    Attributes:
        heads, tails: `breaker_heads` and `breaker_tails` of the next plan; replaced, never modified.
    """

    def __init__(self, sampling: NDArray[np.void]) -> None:
        """`sampling` is [max_rows] of `SAMPLING_DTYPE`."""
        self.heads, self.tails = NO_BREAKER_HEADS, NO_BREAKER_TAILS
        self._sampling = sampling
        self._of_row: dict[int, SequenceBreakers] = {}
        self._first: dict[SequenceBreakers, int] = {}

    def place(self, row: int, breakers: SequenceBreakers) -> None:
        """Assign a row its breakers, after its sampling parameters were set."""
        self._of_row[row] = breakers
        if breakers in self._first:
            self._point(row)
        else:
            self._rebuild()

    def release(self, row: int) -> None:
        """Remove a row's breakers."""
        del self._of_row[row]

    def _rebuild(self) -> None:
        """The arrays of the breakers in use."""
        used = list(dict.fromkeys(self._of_row.values()))
        counts = [len(one.tails) for one in used]
        firsts = np.cumsum([0, *counts])[:-1].tolist()
        self._first = dict(zip(used, firsts, strict=True))
        self.heads = np.concatenate([one.heads for one in used])
        self.tails = np.concatenate([one.tails for one in used])
        for row in self._of_row:
            self._point(row)

    def _point(self, row: int) -> None:
        breakers = self._of_row[row]
        self._sampling["first_breaker"][row] = self._first[breakers]
        self._sampling["num_breakers"][row] = len(breakers.tails)
