"""`ScorePlan`: which prompt tokens a step scores, for the rows that requested prompt logprobs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch.sequence import Sequence


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """What one row scores in a step: entries `part` of the step's scores."""

    sequence: Sequence
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


_NO_INTS: NDArray[np.int32] = np.zeros(0, np.int32)
NO_SCORES = ScorePlan([], _NO_INTS, _NO_INTS, _NO_INTS)


def plan_scores(
    scoring: Mapping[int, Sequence],
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
        first = max(computed, scores.num_scored)
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
