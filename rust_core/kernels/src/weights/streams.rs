//! Weights of several residual streams, and of what layers add beside their mixers.

use super::plan::{Needed, Plan};
use super::{Linear, missing};
use crate::error::KernelError;
use crate::pack::PackedMatrix;
use crate::quantize::Role;
use crate::spec::{LayerSpec, ModelSpec, StreamsSpec, Tensors};

/// How a layer predicts and corrects the streams. Matrices of a few rows are floats: each row of the residual stream is
/// multiplied with them by itself.
#[derive(Debug)]
pub struct StreamWeights {
    /// `[streams, hidden]`: the router's, times its norm's, divided by the hidden size.
    pub router: Vec<f32>,
    /// `[streams, streams, streams]`: of a factor for each pair of streams, what each output of the router adds to it.
    pub predict: Vec<f32>,
    /// `[streams, streams]`: the same of a factor for each stream.
    pub correct: Vec<f32>,
    /// `[hidden]`: factor of the active stream where it gates the layer's own embeddings.
    pub scale: Option<Vec<f32>>,
}

/// How streams are made of the first one, and are merged; a segment for each of the others.
#[derive(Debug)]
pub struct StreamProjections {
    pub projection: Linear,
    pub merge: Vec<Linear>,
}

/// What a layer adds beside its mixer.
#[derive(Debug)]
pub struct LaurelWeights {
    /// `[rank, hidden]`
    pub left: Linear,
    /// `[hidden, rank]`
    pub right: Linear,
    /// Of the output of `right`.
    pub norm: Vec<f32>,
}

/// The matrices outside the layers.
pub(super) fn needed(spec: &ModelSpec, streams: StreamsSpec) -> [Needed; 2] {
    ["streams_projection", "streams_merge"].map(|role| Needed {
        role,
        sensitivity: Role::Other,
        outputs: (streams.count - 1) * spec.hidden_size,
        segment: spec.hidden_size,
        inputs: spec.hidden_size,
    })
}

/// The matrices of a layer.
pub(super) fn needed_laurel(spec: &ModelSpec) -> [Needed; 2] {
    let (rank, hidden) = (spec.laurel_rank, spec.hidden_size);
    [
        Needed::whole("laurel_left", Role::Other, rank, hidden),
        Needed::whole("laurel_right", Role::Other, hidden, rank),
    ]
}

impl Plan<'_> {
    /// A layer's weights of the streams.
    pub(super) fn streams(
        &mut self,
        tensors: &Tensors,
        count: usize,
        hidden: usize,
    ) -> Result<StreamWeights, KernelError> {
        let mut needed = |role: &str, len: usize| {
            let vector = self.vector(tensors, role, len)?;
            vector.ok_or_else(|| missing(role))
        };
        let norm = needed("streams_norm", hidden)?;
        let mut router = needed("streams_router", count * hidden)?;
        for row in router.chunks_exact_mut(hidden) {
            for (weight, norm) in row.iter_mut().zip(&norm) {
                *weight *= norm / hidden as f32;
            }
        }
        Ok(StreamWeights {
            router,
            predict: needed("streams_predict", count * count * count)?,
            correct: needed("streams_correct", count * count)?,
            scale: self.vector(tensors, "streams_scale", hidden)?,
        })
    }

    /// The packed projections of the streams.
    pub(super) fn stream_projections(
        &self,
        matrices: &[PackedMatrix],
    ) -> Option<StreamProjections> {
        let projection = matrices[self.outer("streams_projection")?];
        let merge = matrices[self.outer("streams_merge")?];
        let segments = 0..merge.outputs / merge.segment;
        let segment = |at| Linear::without_bias(merge.segment_matrix(at));
        Some(StreamProjections {
            projection: Linear::without_bias(projection),
            merge: segments.map(segment).collect(),
        })
    }

    /// What a layer adds beside its mixer.
    pub(super) fn laurel(
        &mut self,
        layer: &LayerSpec,
        index: usize,
        hidden: usize,
        matrices: &[PackedMatrix],
    ) -> Result<LaurelWeights, KernelError> {
        let norm = self.vector(&layer.tensors, "laurel_norm", hidden)?;
        Ok(LaurelWeights {
            left: self.needed_linear(layer, index, "laurel_left", matrices)?,
            right: self.needed_linear(layer, index, "laurel_right", matrices)?,
            norm: norm.ok_or_else(|| missing("laurel_norm"))?,
        })
    }
}
