//! The memory that an executor will hold, computed before anything is loaded.
//!
//! The sizes come from the code that allocates: weights are laid out, and buffers reserved, as in a load. Reserved
//! memory that is not touched takes no physical memory, so this costs microseconds and reads headers only.

use std::path::PathBuf;

use super::{Executor, ExecutorConfig, kv_shape, limits_of};
use crate::arena::with_reserved_bytes;
use crate::error::KernelError;
use crate::format::{TensorSource, open_model_weights};
use crate::kv_cache::KvShapes;
use crate::pool::Pool;
use crate::quantize::WeightMode;
use crate::recurrent::states::StateCache;
use crate::scratch::Scratch;
use crate::spec::ModelSpec;
use crate::topology::Topology;
use crate::weights::Weights;

/// Sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The packed weights.
    pub weight_bytes: usize,
    /// Of these, without those of the experts that a token does not choose.
    pub active_bytes: usize,
    /// The type that most of them are packed as.
    pub weight_format: &'static str,
    /// The buffers of a step; the largest steps touch all of them.
    pub work_bytes: usize,
    /// A KV block over all layers.
    pub block_bytes: usize,
    /// Of these, in the layers that need to keep a window only.
    pub window_block_bytes: usize,
    /// Tokens of the largest of their windows; 0 if there are no such layers.
    pub window: usize,
    /// A recurrent state over all layers; 0 for a model without.
    pub state_bytes: usize,
}

impl Executor {
    /// Memory of an executor of these files; `config.num_blocks` is not used.
    ///
    /// # Errors
    /// As [`Executor::load`], as far as headers and configuration are concerned.
    pub fn plan_memory(
        spec: &ModelSpec,
        paths: &[PathBuf],
        config: &ExecutorConfig,
    ) -> Result<MemoryPlan, KernelError> {
        let source = open_model_weights(paths, spec.quantization)
            .map_err(|error| KernelError::model(error.to_string()))?;
        Self::plan_memory_of(spec, source.as_ref(), config)
    }

    /// As [`Executor::plan_memory`] with weights from `source`.
    pub(super) fn plan_memory_of(
        spec: &ModelSpec,
        source: &dyn TensorSource,
        config: &ExecutorConfig,
    ) -> Result<MemoryPlan, KernelError> {
        let limits = limits_of(spec, config)?;
        let workers = Pool::size_for(config.threads, &Topology::detect())?;
        let (scratch, work_bytes) = with_reserved_bytes(|| Scratch::new(spec, &limits, workers));
        drop(scratch?);
        let windows = spec.windows(limits.max_model_len);
        let shapes = KvShapes::divide(kv_shape(spec, config)?, &windows.layers, 1);
        let window_block_bytes = shapes.windows.map_or(Ok(0), |shape| shape.block_bytes())?;
        let weights = Weights::planned(spec, source, WeightMode::parse(&config.weights)?)?;
        Ok(MemoryPlan {
            weight_bytes: weights.bytes,
            active_bytes: weights.active_bytes,
            weight_format: weights.format,
            work_bytes,
            block_bytes: kv_shape(spec, config)?.block_bytes()?,
            window_block_bytes,
            window: windows.tokens,
            state_bytes: StateCache::new(&spec.states(), 0)?.slot_bytes(),
        })
    }
}
