"""Prompt logprobs: what the model thought of the tokens it was given.

A row's known tokens go through the model chunk by chunk anyway; for a row that asks, the step also
reports the log-probability of each chunk's next tokens. What comes back is kept beside the request,
so a preempted one does not score a token twice. Rows that do not ask pay nothing; the loops below
run over those that do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.api.request import PromptLogprobs, TopLogprob
from engine.executors.base import StepResult

if TYPE_CHECKING:
    from engine.batch.sequence import Sequence


class PromptScores:
    """Logprobs of one prompt's tokens, but the first. The engine's thread writes.

    Attributes:
        top: alternatives kept for each token.
        done: how many are scored. Raised last: readers may read that many.
    """

    __slots__ = ("_logprobs", "_ranks", "_top_ids", "_top_logprobs", "done", "top")

    def __init__(self, num_prompt: int, top: int) -> None:
        count = num_prompt - 1
        self.top = top
        self.done = 0
        self._logprobs = np.zeros(count, np.float32)
        self._ranks = np.zeros(count, np.int32)
        self._top_ids = np.zeros((count, top), np.int32)
        self._top_logprobs = np.zeros((count, top), np.float32)

    @property
    def complete(self) -> bool:
        """Whether every token is scored."""
        return self.done == len(self._logprobs)

    def take(self, result: StepResult, part: slice) -> bool:
        """Keep the next scores, `part` of a step's; False if one of them is not a number."""
        logprobs = result.score_logprobs[part]
        here = slice(self.done, self.done + len(logprobs))
        self._logprobs[here] = logprobs
        self._ranks[here] = result.score_ranks[part]
        self._top_ids[here] = result.score_top_ids[part, : self.top]
        self._top_logprobs[here] = result.score_top_logprobs[part, : self.top]
        self.done = here.stop
        return not bool(np.isnan(logprobs).any())

    def result(self) -> PromptLogprobs:
        """What is known, for the caller. Any thread."""
        done = self.done
        rows = zip(self._top_ids[:done].tolist(), self._top_logprobs[:done].tolist(), strict=True)
        return PromptLogprobs(
            logprobs=tuple(self._logprobs[:done].tolist()),
            ranks=tuple(self._ranks[:done].tolist()),
            top=tuple(tuple(map(TopLogprob, ids, logprobs)) for ids, logprobs in rows),
        )


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """What one row scores in a step: entries `part` of the step's scores."""

    sequence: "Sequence"
    part: slice


@dataclass(frozen=True, slots=True)
class ScorePlan:
    """A step's scores; the arrays are those of `StepPlan`.

    Attributes:
        runs: who they belong to.
        tokens, targets, tops: [P] int32.
    """

    runs: list[ScoredRun]
    tokens: NDArray[np.int32]
    targets: NDArray[np.int32]
    tops: NDArray[np.int32]


_NONE: NDArray[np.int32] = np.zeros(0, np.int32)
NO_SCORES = ScorePlan([], _NONE, _NONE, _NONE)


def plan_scores(
    scoring: Mapping[int, "Sequence"],
    batch: NDArray[np.int32],
    query_start: NDArray[np.int32],
    positions: NDArray[np.int32],
    token_table: NDArray[np.int32],
) -> ScorePlan:
    """What the rows that want prompt logprobs score in a step.

    Args:
        scoring: those rows.
        batch, query_start, positions, token_table: as in `StepPlan`.
    """
    runs: list[ScoredRun] = []
    tokens: list[NDArray[np.int32]] = []
    targets: list[NDArray[np.int32]] = []
    tops: list[NDArray[np.int32]] = []
    total = 0
    for index in np.flatnonzero(np.isin(batch, list(scoring))).tolist():
        row = int(batch[index])
        sequence = scoring[row]
        scores = sequence.mailbox.prompt_scores
        if scores is None or scores.complete:
            continue
        start, stop = int(query_start[index]), int(query_start[index + 1])
        computed = int(positions[start])
        # A recomputation begins before what is still to be scored; the answer lies behind it.
        first = max(computed, scores.done)
        last = min(computed + stop - start, sequence.num_prompt - 1)
        count = last - first
        if count <= 0:
            continue
        tokens.append(np.arange(start + first - computed, start + last - computed, dtype=np.int32))
        targets.append(token_table[row, first + 1 : last + 1])
        tops.append(np.full(count, scores.top, np.int32))
        runs.append(ScoredRun(sequence, slice(total, total + count)))
        total += count
    if not runs:
        return NO_SCORES
    return ScorePlan(runs, np.concatenate(tokens), np.concatenate(targets), np.concatenate(tops))
