//! The sampler of single rows, for executors that compute their logits elsewhere.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyUntypedArrayMethods};
use pravaha_kernels::sampler::dry::MAX_BREAKER_TAIL;
use pravaha_kernels::sampler::row_sampler::{self, RowInput};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::executor::to_python;

/// See `engine/_core.pyi`.
#[pyclass(module = "engine._core")]
pub struct RowSampler {
    sampler: row_sampler::RowSampler,
}

#[pymethods]
impl RowSampler {
    #[new]
    fn new(vocab: usize) -> Self {
        Self {
            sampler: row_sampler::RowSampler::new(vocab),
        }
    }

    #[pyo3(signature = (
        logits, params, tokens, *, penalty_start, bias_ids, bias_values, breaker_heads, breaker_tails, mask,
        top_ids, top_logprobs
    ))]
    #[allow(clippy::too_many_arguments)]
    fn sample(
        &mut self,
        py: Python<'_>,
        mut logits: PyReadwriteArray1<'_, f32>,
        params: PyReadonlyArray1<'_, u8>,
        tokens: PyReadonlyArray1<'_, i32>,
        penalty_start: usize,
        bias_ids: PyReadonlyArray1<'_, i32>,
        bias_values: PyReadonlyArray1<'_, f32>,
        breaker_heads: PyReadonlyArray2<'_, u32>,
        breaker_tails: PyReadonlyArray2<'_, i32>,
        mask: Option<PyReadonlyArray1<'_, u32>>,
        mut top_ids: PyReadwriteArray1<'_, i32>,
        mut top_logprobs: PyReadwriteArray1<'_, f32>,
    ) -> PyResult<(i32, f32)> {
        let patterns = breaker_heads.shape()[0];
        if breaker_tails.shape() != [patterns, MAX_BREAKER_TAIL] {
            return Err(PyValueError::new_err(
                "The arrays of breakers contradict each other.",
            ));
        }
        let input = RowInput {
            params: params.as_slice()?,
            tokens: tokens.as_slice()?,
            penalty_start,
            bias_ids: bias_ids.as_slice()?,
            bias_values: bias_values.as_slice()?,
            breaker_heads: breaker_heads.as_slice()?,
            breaker_tails: breaker_tails.as_slice()?,
            mask: mask.as_ref().map(|mask| mask.as_slice()).transpose()?,
        };
        let logits = logits.as_slice_mut()?;
        let (ids, logprobs) = (top_ids.as_slice_mut()?, top_logprobs.as_slice_mut()?);
        let sampler = &mut self.sampler;
        let sampled = py
            .detach(|| sampler.sample(logits, &input, ids, logprobs))
            .map_err(to_python)?;
        Ok((sampled.token.unwrap_or(-1), sampled.logprob))
    }

    fn score(
        &mut self,
        py: Python<'_>,
        logits: PyReadonlyArray1<'_, f32>,
        target: i32,
        mut top_ids: PyReadwriteArray1<'_, i32>,
        mut top_logprobs: PyReadwriteArray1<'_, f32>,
    ) -> PyResult<(f32, i32)> {
        let logits = logits.as_slice()?;
        let (ids, logprobs) = (top_ids.as_slice_mut()?, top_logprobs.as_slice_mut()?);
        let sampler = &mut self.sampler;
        let scored = py
            .detach(|| sampler.score(logits, target, ids, logprobs))
            .map_err(to_python)?;
        Ok((scored.logprob, scored.rank))
    }

    fn logprobs_of(
        &mut self,
        py: Python<'_>,
        logits: PyReadonlyArray1<'_, f32>,
        ids: PyReadonlyArray1<'_, i32>,
        mut logprobs: PyReadwriteArray1<'_, f32>,
    ) -> PyResult<()> {
        let (logits, ids, logprobs) = (
            logits.as_slice()?,
            ids.as_slice()?,
            logprobs.as_slice_mut()?,
        );
        let sampler = &mut self.sampler;
        py.detach(|| sampler.logprobs_of(logits, ids, logprobs))
            .map_err(to_python)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RowSampler>()
}
