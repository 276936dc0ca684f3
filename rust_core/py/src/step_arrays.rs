//! `StepArrays`: the addresses of the arrays of a step and of its results.

use numpy::{
    PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2, PyUntypedArrayMethods,
};
use pravaha_kernels::executor::StepOutput;
use pravaha_kernels::plan::StepInput;
use pyo3::prelude::*;

use crate::held_array::HeldArray;

/// See `engine/_core.pyi`.
#[pyclass(module = "engine._core")]
pub(crate) struct StepArrays {
    rows: HeldArray<i32>,
    query_start: HeldArray<i32>,
    token_ids: HeldArray<i32>,
    positions: HeldArray<i32>,
    needs_logits: HeldArray<u8>,
    block_tables: HeldArray<i32>,
    max_blocks: usize,
    token_table: HeldArray<i32>,
    token_stride: usize,
    num_tokens: HeldArray<i32>,
    penalty_start: HeldArray<i32>,
    sampling: HeldArray<u8>,
    bias_rows: HeldArray<i32>,
    bias_ids: HeldArray<i32>,
    bias_values: HeldArray<f32>,
    breaker_heads: HeldArray<u32>,
    breaker_tails: HeldArray<i32>,
    mask_rows: HeldArray<i32>,
    mask_bits: HeldArray<u32>,
    num_draft_tokens: HeldArray<i32>,
    score_tokens: HeldArray<i32>,
    score_targets: HeldArray<i32>,
    score_tops: HeldArray<i32>,
    sampled: HeldArray<i32>,
    logprobs: HeldArray<f32>,
    top_ids: HeldArray<i32>,
    top_logprobs: HeldArray<f32>,
    failed: HeldArray<u8>,
    accepted: HeldArray<i32>,
    draft_logprobs: HeldArray<f32>,
    draft_top_ids: HeldArray<i32>,
    draft_top_logprobs: HeldArray<f32>,
    score_logprobs: HeldArray<f32>,
    score_ranks: HeldArray<i32>,
    score_top_ids: HeldArray<i32>,
    score_top_logprobs: HeldArray<f32>,
}

impl StepArrays {
    /// What the executor reads, and where it writes.
    pub(crate) fn parts(&mut self) -> (StepInput<'_>, StepOutput<'_>) {
        let input = StepInput {
            rows: self.rows.slice(),
            query_start: self.query_start.slice(),
            token_ids: self.token_ids.slice(),
            positions: self.positions.slice(),
            needs_logits: self.needs_logits.slice(),
            block_tables: self.block_tables.slice(),
            max_blocks: self.max_blocks,
            token_table: self.token_table.slice(),
            token_stride: self.token_stride,
            num_tokens: self.num_tokens.slice(),
            penalty_start: self.penalty_start.slice(),
            sampling: self.sampling.slice(),
            bias_rows: self.bias_rows.slice(),
            bias_ids: self.bias_ids.slice(),
            bias_values: self.bias_values.slice(),
            breaker_heads: self.breaker_heads.slice(),
            breaker_tails: self.breaker_tails.slice(),
            mask_rows: self.mask_rows.slice(),
            mask_bits: self.mask_bits.slice(),
            num_draft_tokens: self.num_draft_tokens.slice(),
            score_tokens: self.score_tokens.slice(),
            score_targets: self.score_targets.slice(),
            score_tops: self.score_tops.slice(),
        };
        let output = StepOutput {
            sampled: self.sampled.slice_mut(),
            logprobs: self.logprobs.slice_mut(),
            top_ids: self.top_ids.slice_mut(),
            top_logprobs: self.top_logprobs.slice_mut(),
            failed: self.failed.slice_mut(),
            accepted: self.accepted.slice_mut(),
            draft_logprobs: self.draft_logprobs.slice_mut(),
            draft_top_ids: self.draft_top_ids.slice_mut(),
            draft_top_logprobs: self.draft_top_logprobs.slice_mut(),
            score_logprobs: self.score_logprobs.slice_mut(),
            score_ranks: self.score_ranks.slice_mut(),
            score_top_ids: self.score_top_ids.slice_mut(),
            score_top_logprobs: self.score_top_logprobs.slice_mut(),
        };
        (input, output)
    }
}

#[pymethods]
impl StepArrays {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        rows: PyReadonlyArray1<'_, i32>,
        query_start: PyReadonlyArray1<'_, i32>,
        token_ids: PyReadonlyArray1<'_, i32>,
        positions: PyReadonlyArray1<'_, i32>,
        needs_logits: PyReadonlyArray1<'_, u8>,
        block_tables: PyReadonlyArray2<'_, i32>,
        token_table: PyReadonlyArray2<'_, i32>,
        num_tokens: PyReadonlyArray1<'_, i32>,
        penalty_start: PyReadonlyArray1<'_, i32>,
        sampling: PyReadonlyArray1<'_, u8>,
        bias_rows: PyReadonlyArray1<'_, i32>,
        bias_ids: PyReadonlyArray1<'_, i32>,
        bias_values: PyReadonlyArray1<'_, f32>,
        breaker_heads: PyReadonlyArray2<'_, u32>,
        breaker_tails: PyReadonlyArray2<'_, i32>,
        mask_rows: PyReadonlyArray1<'_, i32>,
        mask_bits: PyReadonlyArray2<'_, u32>,
        num_draft_tokens: PyReadonlyArray1<'_, i32>,
        score_tokens: PyReadonlyArray1<'_, i32>,
        score_targets: PyReadonlyArray1<'_, i32>,
        score_tops: PyReadonlyArray1<'_, i32>,
        sampled: PyReadwriteArray1<'_, i32>,
        logprobs: PyReadwriteArray1<'_, f32>,
        top_ids: PyReadwriteArray2<'_, i32>,
        top_logprobs: PyReadwriteArray2<'_, f32>,
        failed: PyReadwriteArray1<'_, u8>,
        accepted: PyReadwriteArray1<'_, i32>,
        draft_logprobs: PyReadwriteArray1<'_, f32>,
        draft_top_ids: PyReadwriteArray2<'_, i32>,
        draft_top_logprobs: PyReadwriteArray2<'_, f32>,
        score_logprobs: PyReadwriteArray1<'_, f32>,
        score_ranks: PyReadwriteArray1<'_, i32>,
        score_top_ids: PyReadwriteArray2<'_, i32>,
        score_top_logprobs: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<Self> {
        Ok(Self {
            rows: HeldArray::reading(&rows)?,
            query_start: HeldArray::reading(&query_start)?,
            token_ids: HeldArray::reading(&token_ids)?,
            positions: HeldArray::reading(&positions)?,
            needs_logits: HeldArray::reading(&needs_logits)?,
            block_tables: HeldArray::reading(&block_tables)?,
            max_blocks: block_tables.shape()[1],
            token_table: HeldArray::reading(&token_table)?,
            token_stride: token_table.shape()[1],
            num_tokens: HeldArray::reading(&num_tokens)?,
            penalty_start: HeldArray::reading(&penalty_start)?,
            sampling: HeldArray::reading(&sampling)?,
            bias_rows: HeldArray::reading(&bias_rows)?,
            bias_ids: HeldArray::reading(&bias_ids)?,
            bias_values: HeldArray::reading(&bias_values)?,
            breaker_heads: HeldArray::reading(&breaker_heads)?,
            breaker_tails: HeldArray::reading(&breaker_tails)?,
            mask_rows: HeldArray::reading(&mask_rows)?,
            mask_bits: HeldArray::reading(&mask_bits)?,
            num_draft_tokens: HeldArray::reading(&num_draft_tokens)?,
            score_tokens: HeldArray::reading(&score_tokens)?,
            score_targets: HeldArray::reading(&score_targets)?,
            score_tops: HeldArray::reading(&score_tops)?,
            sampled: HeldArray::writing(&sampled)?,
            logprobs: HeldArray::writing(&logprobs)?,
            top_ids: HeldArray::writing(&top_ids)?,
            top_logprobs: HeldArray::writing(&top_logprobs)?,
            failed: HeldArray::writing(&failed)?,
            accepted: HeldArray::writing(&accepted)?,
            draft_logprobs: HeldArray::writing(&draft_logprobs)?,
            draft_top_ids: HeldArray::writing(&draft_top_ids)?,
            draft_top_logprobs: HeldArray::writing(&draft_top_logprobs)?,
            score_logprobs: HeldArray::writing(&score_logprobs)?,
            score_ranks: HeldArray::writing(&score_ranks)?,
            score_top_ids: HeldArray::writing(&score_top_ids)?,
            score_top_logprobs: HeldArray::writing(&score_top_logprobs)?,
        })
    }
}
