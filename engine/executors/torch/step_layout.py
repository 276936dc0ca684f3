"""`StepLayout`: index arrays derived from a `StepPlan`, in numpy and without loops."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.executors.base import StepPlan


@dataclass(frozen=True, slots=True)
class StepLayout:
    """Index arrays of a step with N samples.

    Attributes:
        query_start: [R + 1] int32, batch → first flat token.
        context_lens: [R] int32, tokens in the KV cache after the step.
        block_tables: [R, blocks] int32, batch → blocks, as wide as the longest row needs.
        slots: [T] int64, flat token → block × block_size + offset.
        sampled_rows: [N] int64, batch index of each sample; a row with d drafts has 1 + d samples.
        sampled_tokens: [N] int64, the flat token before each sample.
        draft_index: [N] int64, number of the row's draft tokens before the sample.
        has_draft: [N] bool, whether the row has a draft token at the sample's position.
    """

    query_start: NDArray[np.int32]
    context_lens: NDArray[np.int32]
    block_tables: NDArray[np.int32]
    slots: NDArray[np.int64]
    sampled_rows: NDArray[np.int64]
    sampled_tokens: NDArray[np.int64]
    draft_index: NDArray[np.int64]
    has_draft: NDArray[np.bool_]


def build_layout(plan: StepPlan, *, block_size: int) -> StepLayout:
    """Build the layout of a step.

    Args:
        plan: the step.
        block_size: tokens per block.
    """
    last = plan.query_start[1:] - 1
    context_lens = plan.positions[last] + 1
    width = -(-int(context_lens.max()) // block_size)
    tables = plan.block_tables[plan.rows, :width]
    batch = np.arange(len(plan.rows))
    if len(plan.positions) != len(batch):
        batch = np.repeat(batch, np.diff(plan.query_start))
    block, offset = np.divmod(plan.positions, block_size)
    slots = tables[batch, block].astype(np.int64) * block_size + offset
    sampled = np.flatnonzero(plan.needs_logits)
    if not plan.num_draft_tokens.size:
        nothing = np.zeros(len(sampled), np.int64)
        return StepLayout(
            query_start=plan.query_start,
            context_lens=context_lens.astype(np.int32),
            block_tables=np.ascontiguousarray(tables),
            slots=slots,
            sampled_rows=sampled,
            sampled_tokens=last[sampled].astype(np.int64),
            draft_index=nothing,
            has_draft=nothing.astype(np.bool_),
        )
    drafts = plan.num_draft_tokens[sampled].astype(np.int64)
    before = np.cumsum(drafts + 1) - (drafts + 1)
    draft_index = np.arange(len(sampled) + int(drafts.sum())) - np.repeat(before, drafts + 1)
    first = last[sampled].astype(np.int64) - drafts
    return StepLayout(
        query_start=plan.query_start,
        context_lens=context_lens.astype(np.int32),
        block_tables=np.ascontiguousarray(tables),
        slots=slots,
        sampled_rows=np.repeat(sampled, drafts + 1),
        sampled_tokens=np.repeat(first, drafts + 1) + draft_index,
        draft_index=draft_index,
        has_draft=draft_index < np.repeat(drafts, drafts + 1),
    )
