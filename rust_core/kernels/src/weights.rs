//! Loading of a model's weights: look-up by role, shape check, and parallel packing by all workers.
//!
//! All packed matrices are in one arena, in the order in which a step reads them. Each worker packs the panels
//! that it will multiply with, so that on NUMA machines first touch places them on its node. Float weights are quantised
//! meanwhile if a [`WeightMode`] says so, a panel at a time. The source file's pages are released every [`RELEASED_BYTES`], so
//! a model is in memory only once. If the packed weights are kept on disk ([`crate::packed_file`]), they are mapped instead,
//! and of the source only headers and vectors are read. If they are not there yet, they may be packed into the file
//! (`into_file.rs`), so that the weights of experts that nobody chooses are never in memory.

use std::sync::Arc;

use crate::arena::Arena;
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::format::TensorSource;
use crate::pack::{PANEL_COLUMNS, PackedMatrix};
use crate::packed_file::{PackedFile, PackedLocation, PackedSaving, PackedState};
use crate::pool::Pool;
use crate::quantize::WeightMode;
use crate::spec::ModelSpec;

mod experts;
mod identity;
mod into_file;
mod layer;
mod plan;
mod recurrent;
mod stored;
mod streams;

pub use self::experts::{ExpertWeights, OwnNorms};
pub use self::layer::{
    AttentionWeights, FeedForwardWeights, LayerWeights, MixerWeights, MlpWeights, PerLayerWeights,
};
use self::plan::Plan;
pub use self::recurrent::{ShortConvWeights, StateHeadsWeights};
pub use self::streams::{LaurelWeights, StreamProjections, StreamWeights};

/// A matrix and its bias.
#[derive(Debug)]
pub struct Linear {
    pub matrix: PackedMatrix,
    /// 16 values per panel; empty if there is no bias.
    bias: Vec<f32>,
    /// Whether a norm follows before the outputs are added to the residual stream. It makes small outputs as large as any,
    /// and errors with them, so that the inputs are quantized more precisely.
    pub normalized_outputs: bool,
}

impl Linear {
    pub fn without_bias(matrix: PackedMatrix) -> Self {
        Self {
            matrix,
            bias: Vec::new(),
            normalized_outputs: false,
        }
    }

    /// The bias of a panel; null if there is none.
    pub fn panel_bias(&self, panel: usize) -> *const f32 {
        self.bias
            .get(panel * PANEL_COLUMNS..)
            .map_or(std::ptr::null(), |bias| {
                if bias.is_empty() {
                    std::ptr::null()
                } else {
                    bias.as_ptr()
                }
            })
    }
}

/// Weights of a norm of the hidden state.
#[derive(Debug)]
pub struct Norm {
    pub weight: Vec<f32>,
    /// Of a LayerNorm; empty if it has none.
    pub bias: Vec<f32>,
}

/// Weights that have not been read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedWeights {
    /// Bytes of all packed matrices.
    pub bytes: usize,
    /// Of these, without those of the experts that a token does not choose.
    pub active_bytes: usize,
    /// The most common type that the layers' weights will be packed as.
    pub format: &'static str,
}

/// All weights of a model.
#[derive(Debug)]
pub struct Weights {
    pub embedding: PackedMatrix,
    /// `[context, hidden]`, where positions are embedded.
    pub position_embedding: Option<PackedMatrix>,
    /// `[vocab, layers * width]` and how the hidden state is projected to as many, where layers have embeddings of their own.
    pub per_layer: Option<PerLayerInputs>,
    /// None for a single residual stream.
    pub streams: Option<StreamProjections>,
    pub layers: Vec<LayerWeights>,
    pub final_norm: Norm,
    /// The embedding matrix if the model ties them.
    pub lm_head: Linear,
    /// Number of parameters in the tensors that the model uses.
    pub parameters: usize,
    /// The most common type that the layers' weights were packed as.
    pub format: &'static str,
    /// Whether the packed weights come from a file.
    pub packed: PackedState,
    /// Saves them where they belong, if they are not there yet.
    pub saving: Option<Arc<PackedSaving>>,
    arena: Arc<Arena>,
}

/// What every layer's own embeddings are computed from (Gemma 3n, 4).
#[derive(Debug)]
pub struct PerLayerInputs {
    pub embedding: PackedMatrix,
    pub projection: Linear,
    pub norm: Vec<f32>,
}

impl Weights {
    /// Bytes of all packed matrices.
    pub fn packed_bytes(&self) -> usize {
        self.arena.len()
    }

    /// What the packed matrices of a model will be, from the shapes and types of its tensors. Reads no weights.
    pub fn planned(
        spec: &ModelSpec,
        source: &dyn TensorSource,
        mode: WeightMode,
    ) -> Result<PlannedWeights, KernelError> {
        let plan = Plan::new(spec, source, mode)?;
        Ok(PlannedWeights {
            bytes: plan.bytes(),
            active_bytes: plan.active_bytes(),
            format: plan.commonest_format(),
        })
    }

    /// The file of the packed weights of a model. Reads no weights.
    pub fn find_packed(
        spec: &ModelSpec,
        source: &dyn TensorSource,
        mode: WeightMode,
        location: &PackedLocation,
    ) -> Result<PackedFile, KernelError> {
        Ok(Plan::new(spec, source, mode)?.packed_file(location))
    }

    /// Check every tensor, then map the packed weights at `location`, or pack them. `progress` is called on the calling thread
    /// with the completed fraction after each layer, and returns whether to go on. `level` is one that this machine has; the
    /// weights do not depend on it.
    pub fn load(
        spec: &ModelSpec,
        source: &dyn TensorSource,
        mode: WeightMode,
        level: Level,
        location: Option<&PackedLocation>,
        pool: &mut Pool,
        progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, KernelError> {
        let mut plan = Plan::new(spec, source, mode)?;
        let (mapped, packed, mut saving) = plan.find_packed(location);
        let into_file = location
            .filter(|location| location.packs_into_file)
            .and_then(|_| saving.take());
        let mut is_packed = false;
        let arena = match (mapped, into_file) {
            (Some(arena), _) => arena,
            (None, Some(saving)) => {
                is_packed = true;
                plan.pack_into_file(&saving, level, pool, progress)?
            }
            (None, None) => Arena::new(plan.bytes())?,
        };
        let arena = Arc::new(arena);
        let matrices = plan.matrices(&arena);
        let parts = plan.parts();
        for (done, part) in (1..).zip(&parts) {
            if arena.is_file() {
                for entries in plan.read_by_every_step(part) {
                    arena.populate(plan.range_of(&entries));
                }
            } else {
                plan.pack(&plan.whole(part.clone()), &arena, level, pool)?;
            }
            // What was packed into the file was reported then.
            if !is_packed && !progress(done as f32 / parts.len() as f32) {
                return Err(stopped());
            }
        }
        let saving = saving.map(|saving| Arc::new(saving.of(Arc::clone(&arena))));
        let format = plan.commonest_format();
        let final_norm = plan
            .norm(&spec.tensors, "final_norm", spec.hidden_size)?
            .ok_or_else(|| missing("final_norm"))?;
        let layers = (0..spec.layers.len())
            .map(|layer| plan.finish_layer(spec, layer, &matrices))
            .collect::<Result<_, _>>()?;
        let outer = |role: &str| plan.outer(role).map(|entry| matrices[entry]);
        let embedding = outer("embedding").expect("planned");
        let position_embedding = outer("position_embedding");
        let head = outer("lm_head").unwrap_or(embedding);
        let per_layer = match (
            outer("per_layer_embedding"),
            outer("per_layer_model_projection"),
        ) {
            (Some(embedding), Some(projection)) => {
                let norm =
                    plan.vector(&spec.tensors, "per_layer_model_norm", spec.per_layer_width)?;
                Some(PerLayerInputs {
                    embedding,
                    projection: Linear::without_bias(projection),
                    norm: norm.ok_or_else(|| missing("per_layer_model_norm"))?,
                })
            }
            _ => None,
        };
        let streams = plan.stream_projections(&matrices);
        let lm_head = plan.linear(&spec.tensors, "lm_head", head)?;
        Ok(Self {
            embedding,
            position_embedding,
            per_layer,
            streams,
            layers,
            final_norm,
            lm_head,
            parameters: plan.parameters(),
            format,
            packed,
            saving,
            arena,
        })
    }
}

/// Whoever wanted the weights does not want them any more.
fn stopped() -> KernelError {
    KernelError::config("The load was stopped.")
}

/// The model's description lacks a weight that it needs.
fn missing(role: &str) -> KernelError {
    KernelError::model(format!("The model's description names no {role}."))
}
