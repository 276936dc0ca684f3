"""Builds the `StepResult`: verifies draft tokens and copies samples and scores into numpy arrays."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.executors.base import StepPlan, StepResult
from engine.executors.torch.sampler import Sampled
from engine.executors.torch.scoring import Scored
from engine.executors.torch.step_layout import StepLayout


def step_result(
    plan: StepPlan, layout: StepLayout, sampled: Sampled | None, scored: Scored | None
) -> StepResult:
    """Build the result of a step.

    Args:
        plan: the step.
        layout: its layout.
        sampled: [N] samples in the layout's order; None if there are none.
        scored: [P] scores in the plan's order; None if there are none.
    """
    count, drafts = len(plan.rows), int(plan.num_draft_tokens.sum())
    result = StepResult.empty(count, drafts=drafts, logprob_ids=len(plan.logprob_ids))
    if scored is not None:
        result = replace(
            result,
            score_logprobs=scored.logprobs.cpu().numpy(),
            score_ranks=scored.ranks.cpu().numpy().astype(np.int32),
            score_top_ids=scored.top_ids.cpu().numpy().astype(np.int32),
            score_top_logprobs=scored.top_logprobs.cpu().numpy(),
        )
    if sampled is None:
        return result
    tokens = sampled.tokens.cpu().numpy()
    logprobs = sampled.logprobs.cpu().numpy()
    top_ids = sampled.top_ids.cpu().numpy()
    top_logprobs = sampled.top_logprobs.cpu().numpy()
    last = np.arange(len(tokens))
    if drafts:
        accepted = _accepted(plan, layout, tokens)
        result.accepted[layout.sampled_rows] = accepted
        drafted = np.flatnonzero(layout.has_draft)
        result.draft_logprobs[:] = logprobs[drafted]
        result.draft_top_ids[:] = top_ids[drafted]
        result.draft_top_logprobs[:] = top_logprobs[drafted]
        last = np.flatnonzero(layout.draft_index == accepted)
    rows = layout.sampled_rows[last]
    result.sampled[rows] = tokens[last]
    result.logprobs[rows] = logprobs[last]
    result.top_ids[rows] = top_ids[last]
    result.top_logprobs[rows] = top_logprobs[last]
    result.failed[rows] = sampled.failed.cpu().numpy()[last]
    if sampled.token_id_logprobs is not None:
        entries, values = sampled.token_id_logprobs
        result.token_id_logprobs[entries.cpu().numpy()] = values.cpu().numpy()
    return result


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
