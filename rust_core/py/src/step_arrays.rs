//! `StepArrays`: the addresses of the arrays of a step and of its results.

use numpy::{
    PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2, PyUntypedArrayMethods,
};
use pravaha_kernels::executor::StepOutput;
use pravaha_kernels::plan::StepInput;
use pyo3::prelude::*;

use crate::held_array::Held;

/// See `engine/_core.pyi`.
#[pyclass(module = "engine._core")]
pub(crate) struct StepArrays {
    rows: Held<i32>,
    query_start: Held<i32>,
    token_ids: Held<i32>,
    positions: Held<i32>,
    needs_logits: Held<u8>,
    block_tables: Held<i32>,
    max_blocks: usize,
    token_table: Held<i32>,
    token_stride: usize,
    num_tokens: Held<i32>,
    penalty_start: Held<i32>,
    sampling: Held<u8>,
    bias_rows: Held<i32>,
    bias_ids: Held<i32>,
    bias_values: Held<f32>,
    mask_rows: Held<i32>,
    mask_bits: Held<u32>,
    num_draft_tokens: Held<i32>,
    score_tokens: Held<i32>,
    score_targets: Held<i32>,
    score_tops: Held<i32>,
    sampled: Held<i32>,
    logprobs: Held<f32>,
    top_ids: Held<i32>,
    top_logprobs: Held<f32>,
    failed: Held<u8>,
    accepted: Held<i32>,
    draft_logprobs: Held<f32>,
    draft_top_ids: Held<i32>,
    draft_top_logprobs: Held<f32>,
    score_logprobs: Held<f32>,
    score_ranks: Held<i32>,
    score_top_ids: Held<i32>,
    score_top_logprobs: Held<f32>,
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
            rows: Held::reading(&rows)?,
            query_start: Held::reading(&query_start)?,
            token_ids: Held::reading(&token_ids)?,
            positions: Held::reading(&positions)?,
            needs_logits: Held::reading(&needs_logits)?,
            block_tables: Held::reading(&block_tables)?,
            max_blocks: block_tables.shape()[1],
            token_table: Held::reading(&token_table)?,
            token_stride: token_table.shape()[1],
            num_tokens: Held::reading(&num_tokens)?,
            penalty_start: Held::reading(&penalty_start)?,
            sampling: Held::reading(&sampling)?,
            bias_rows: Held::reading(&bias_rows)?,
            bias_ids: Held::reading(&bias_ids)?,
            bias_values: Held::reading(&bias_values)?,
            mask_rows: Held::reading(&mask_rows)?,
            mask_bits: Held::reading(&mask_bits)?,
            num_draft_tokens: Held::reading(&num_draft_tokens)?,
            score_tokens: Held::reading(&score_tokens)?,
            score_targets: Held::reading(&score_targets)?,
            score_tops: Held::reading(&score_tops)?,
            sampled: Held::writing(&sampled)?,
            logprobs: Held::writing(&logprobs)?,
            top_ids: Held::writing(&top_ids)?,
            top_logprobs: Held::writing(&top_logprobs)?,
            failed: Held::writing(&failed)?,
            accepted: Held::writing(&accepted)?,
            draft_logprobs: Held::writing(&draft_logprobs)?,
            draft_top_ids: Held::writing(&draft_top_ids)?,
            draft_top_logprobs: Held::writing(&draft_top_logprobs)?,
            score_logprobs: Held::writing(&score_logprobs)?,
            score_ranks: Held::writing(&score_ranks)?,
            score_top_ids: Held::writing(&score_top_ids)?,
            score_top_logprobs: Held::writing(&score_top_logprobs)?,
        })
    }
}
