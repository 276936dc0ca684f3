"""Builds the `StepResult`: copies samples and scores to the host and verifies draft tokens."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine.executors.base import StepPlan, StepResult
from engine.executors.torch.packed_copy import to_host
from engine.executors.torch.sampler import Sampled
from engine.executors.torch.scoring import Scored
from engine.executors.torch.step_layout import StepLayout


def step_result(
    plan: StepPlan,
    layout: StepLayout,
    sampled: Sampled | None,
    scored: Scored | None,
    entries: NDArray[np.int64] | None = None,
) -> StepResult:
    """Build the result of a step; waits until it is computed.

    Args:
        plan: the step.
        layout: its layout.
        sampled: [N] samples in the layout's order; None if there are none.
        scored: [P] scores in the plan's order; None if there are none.
        entries: indices into the plan's `logprob_ids` of the samples' `token_id_logprobs`.
    """
    count, drafts = len(plan.rows), int(plan.num_draft_tokens.sum())
    result = StepResult.empty(count, drafts=drafts, logprob_ids=len(plan.logprob_ids))
    if scored is not None:
        result = replace(result, **_scores(scored))
    if sampled is None:
        return result
    got = to_host(_tensors(sampled))
    tokens, last = got["tokens"], np.arange(len(got["tokens"]))
    if drafts:
        accepted = _accepted(plan, layout, tokens)
        result.accepted[layout.sampled_rows] = accepted
        drafted = np.flatnonzero(layout.has_draft)
        _write_logprobs(
            got,
            drafted,
            result.draft_logprobs,
            result.draft_top_ids,
            result.draft_top_logprobs,
            np.arange(drafts),
        )
        last = np.flatnonzero(layout.draft_index == accepted)
    rows = layout.sampled_rows[last]
    result.sampled[rows] = tokens[last]
    result.failed[rows] = tokens[last] < 0
    _write_logprobs(got, last, result.logprobs, result.top_ids, result.top_logprobs, rows)
    if "token_id_logprobs" in got:
        result.token_id_logprobs[entries] = got["token_id_logprobs"]
    return result


def _tensors(computed: Sampled | Scored) -> dict[str, torch.Tensor]:
    """What was computed, by field."""
    parts = {field.name: getattr(computed, field.name) for field in fields(computed)}
    return {name: part for name, part in parts.items() if part is not None}


def _scores(scored: Scored) -> dict[str, NDArray[Any]]:
    """The fields of the result for the scores."""
    got = to_host(_tensors(scored))
    return {
        "score_logprobs": got["logprobs"],
        "score_ranks": got["ranks"].astype(np.int32),
        "score_top_ids": got["top_ids"].astype(np.int32),
        "score_top_logprobs": got["top_logprobs"],
    }


def _write_logprobs(
    got: dict[str, NDArray[Any]],
    samples: NDArray[np.int64],
    logprobs: NDArray[np.float32],
    top_ids: NDArray[np.int32],
    top_logprobs: NDArray[np.float32],
    places: NDArray[np.int64],
) -> None:
    """Write what was computed of these samples' log-probabilities to `places` of the result."""
    if "logprobs" in got:
        logprobs[places] = got["logprobs"][samples]
    if "top_ids" in got:
        width = got["top_ids"].shape[1]
        top_ids[places, :width] = got["top_ids"][samples]
        top_logprobs[places, :width] = got["top_logprobs"][samples]


def _accepted(plan: StepPlan, layout: StepLayout, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """[N] int64, number of accepted drafts of each sample's row."""
    # The draft at a sample's position is the flat token after `sampled_tokens`.
    following = plan.token_ids[np.minimum(layout.sampled_tokens + 1, len(plan.token_ids) - 1)]
    mismatch = ~layout.has_draft | (tokens != following)
    # Every row has a mismatch, since its last sample has no draft; drafts before the first one count.
    first = np.full(len(plan.rows), len(tokens), np.int64)
    np.minimum.at(first, layout.sampled_rows[mismatch], layout.draft_index[mismatch])
    accepted: NDArray[np.int64] = first[layout.sampled_rows]
    return accepted
