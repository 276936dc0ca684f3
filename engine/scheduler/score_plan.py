"""`ScorePlan`: which prompt tokens a step scores, for the rows that compute prompt logprobs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch.sequence import Sequence


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """The scores of one row in a step: entries `part` of the step's P scores."""

    sequence: Sequence
    part: slice


@dataclass(frozen=True, slots=True)
class ScorePlan:
    """The scores of a step.

    Attributes:
        runs: the sequences that the scores belong to.
        tokens, targets, tops: [P] int32, `score_tokens`, `score_targets`, `score_tops` of `StepPlan`.
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
    """Choose the prompt tokens that a step scores.

    Args:
        scoring: row to sequence, for the rows whose prompt logprobs are incomplete.
        batch, query_start, positions, token_table: `rows` and the arrays of these names in
            `StepPlan`.
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
        if scores is None:
            raise AssertionError(f"{sequence.request_id} has no scores to compute")
        start, stop = int(query_start[index]), int(query_start[index + 1])
        computed = int(positions[start])
        # After a preemption the run may start before the first unscored token and may extend into
        # the output, which is not scored.
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
