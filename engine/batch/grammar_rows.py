"""`GrammarRows`: the rows whose output a grammar or a budget of reasoning constrains, and their token masks.

Hot path for steps that have such rows; a step without them pays one dictionary length check. All
masks of a step are computed with the GIL released, from `_PARALLEL_FROM` masks on in one parallel
call. The Python loops run over rows with a grammar only. Engine's thread only.
"""

import os
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.executors.base import StepPlan
from engine.grammar.matcher import Matcher
from engine.grammar.reasoning_matcher import ReasoningMatcher

if TYPE_CHECKING:
    from llguidance import LLExecutor

RowMatcher = Matcher | ReasoningMatcher

_MAX_THREADS = 8
_PARALLEL_FROM = 8
"""Fewer masks are computed serially: each takes a few µs, less than waking the other threads."""


class GrammarRows:
    """The matcher of each row with a grammar, and the buffer of token masks."""

    def __init__(self, max_rows: int) -> None:
        self._matchers: dict[int, RowMatcher] = {}
        self._has_matcher = np.zeros(max_rows, np.bool_)
        self._bits: NDArray[np.uint32] = np.zeros((0, 0), np.uint32)
        self._pool: LLExecutor | None = None

    def __len__(self) -> int:
        return len(self._matchers)

    def place(self, row: int, matcher: RowMatcher) -> None:
        """Assign `row` a matcher that has consumed the output so far."""
        if not self._bits.size:  # most engines never get a grammar
            self._bits = np.zeros((len(self._has_matcher), matcher.mask_words), np.uint32)
        self._matchers[row] = matcher
        self._has_matcher[row] = True

    def release(self, row: int) -> None:
        """Remove the row's matcher, if any; its sequence keeps it."""
        self._matchers.pop(row, None)
        self._has_matcher[row] = False

    def masks(self, plan: StepPlan) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """Token masks of a plan's rows: `mask_rows` and `mask_bits` of `StepPlan`.

        The mask buffer is reused: the result is valid until the next call. If a matcher fails, its
        mask allows no token, so that the executor reports the row as failed.
        """
        chosen = np.flatnonzero(self._has_matcher[plan.rows] & (plan.needs_logits != 0))
        found = [self._matchers[row] for row in plan.rows[chosen].tolist()]
        constrained = [not one.is_free for one in found]
        chosen = chosen[constrained]
        matchers = [one for one, kept in zip(found, constrained, strict=True) if kept]
        bits = self._bits[: len(matchers)]
        entries = [
            (mask.library, at)
            for at, one in enumerate(matchers)
            if one.error is None and (mask := one.masking) is not None
        ]
        width = bits.shape[1] * bits.itemsize
        if len(entries) < _PARALLEL_FROM:
            for library, at in entries:
                library.unsafe_compute_mask_ptr(bits.ctypes.data + at * width, width)
        else:
            self._executor().unsafe_compute_mask_ptr(entries, bits.ctypes.data, width, len(bits))
        for at, matcher in enumerate(matchers):
            if not matcher.check() or matcher.forced is not None:
                bits[at] = 0
            allowed = matcher.also_allowed if matcher.forced is None else matcher.forced
            if allowed is not None and matcher.error is None:
                bits[at, allowed // 32] |= np.uint32(1 << allowed % 32)
        return chosen.astype(np.int32), bits

    def advance(
        self, rows: NDArray[np.int32], sampled: NDArray[np.int32]
    ) -> list[tuple[int, RowMatcher]]:
        """Advance matchers by the tokens their rows sampled.

        Args:
            rows: [N] int32, rows that got a token.
            sampled: [N] int32, the token of each.

        Returns:
            Rows that finish here, with their matchers: the matcher accepts nothing more, or failed.
        """
        finished: list[tuple[int, RowMatcher]] = []
        chosen = self._has_matcher[rows]
        for row, token in zip(rows[chosen].tolist(), sampled[chosen].tolist(), strict=True):
            matcher = self._matchers[row]
            if not matcher.advance(token) or matcher.finished:
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
