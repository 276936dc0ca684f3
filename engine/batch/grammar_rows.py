"""`GrammarRows`: the rows whose answers follow a grammar, and their token masks.

Hot, but only for steps that have such rows: a step without them pays one look at a dictionary. All
masks of a step are computed without the GIL; many of them in one call, in parallel. The Python loops
here run over rows with a grammar alone. Engine's thread only.
"""

import os
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.executors.base import StepPlan
from engine.grammar.matcher import Matcher

if TYPE_CHECKING:
    from llguidance import LLExecutor

_MAX_THREADS = 8
_PARALLEL_FROM = 8
"""Fewer masks are computed at once faster than other threads are woken: they take a few µs each."""


class GrammarRows:
    """Matchers by row, and the buffer of masks."""

    def __init__(self, max_rows: int) -> None:
        self._matchers: dict[int, Matcher] = {}
        self._has_matcher = np.zeros(max_rows, np.bool_)
        self._bits: NDArray[np.uint32] = np.zeros((0, 0), np.uint32)
        self._pool: LLExecutor | None = None

    def __len__(self) -> int:
        return len(self._matchers)

    def place(self, row: int, matcher: Matcher) -> None:
        """The answer in `row` follows a grammar; the matcher has seen what there is of it."""
        if not self._bits.size:  # most engines never see a grammar
            self._bits = np.zeros((len(self._has_matcher), matcher.mask_words), np.uint32)
        self._matchers[row] = matcher
        self._has_matcher[row] = True

    def release(self, row: int) -> None:
        """The row is given up; its sequence keeps the matcher."""
        self._matchers.pop(row, None)
        self._has_matcher[row] = False

    def masks(self, plan: StepPlan) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """What a plan's rows may sample: `mask_rows` and `mask_bits` of `StepPlan`.

        Valid until the next call. A matcher that breaks here allows nothing, so that the executor
        reports its row as failed.
        """
        chosen = np.flatnonzero(self._has_matcher[plan.rows] & (plan.needs_logits != 0))
        matchers = [self._matchers[row] for row in plan.rows[chosen].tolist()]
        bits = self._bits[: len(matchers)]
        entries = [(one.library, at) for at, one in enumerate(matchers) if one.error is None]
        width = bits.shape[1] * bits.itemsize
        if len(entries) < _PARALLEL_FROM:
            for library, at in entries:
                library.unsafe_compute_mask_ptr(bits.ctypes.data + at * width, width)
        else:
            self._executor().unsafe_compute_mask_ptr(entries, bits.ctypes.data, width, len(bits))
        for at, matcher in enumerate(matchers):
            if not matcher.look():
                bits[at] = 0
        return chosen.astype(np.int32), bits

    def advance(
        self, rows: NDArray[np.int32], sampled: NDArray[np.int32]
    ) -> list[tuple[int, Matcher]]:
        """Show matchers the tokens their rows sampled.

        Args:
            rows: [N] int32, rows that got a token.
            sampled: [N] int32, the tokens.

        Returns:
            Rows that end here: their matcher is finished, or broken.
        """
        finished: list[tuple[int, Matcher]] = []
        chosen = self._has_matcher[rows]
        for row, token in zip(rows[chosen].tolist(), sampled[chosen].tolist(), strict=True):
            matcher = self._matchers[row]
            matcher.library.consume_token(token)
            if not matcher.look() or matcher.finished:
                finished.append((row, matcher))
        return finished

    def _executor(self) -> "LLExecutor":
        if self._pool is None:
            from llguidance import LLExecutor

            self._pool = LLExecutor(min(_usable_cores(), _MAX_THREADS))
        return self._pool


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
