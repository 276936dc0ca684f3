//! The weights of a layer's experts.
//!
//! The networks of all experts are one matrix per role, with a segment for each expert: expert `e` has panels
//! `e * segment_panels` and following. Pages of experts that no row uses are never touched after loading.

use super::Linear;
use super::layer::MlpWeights;
use super::plan::{Needed, Plan};
use crate::error::KernelError;
use crate::pack::PackedMatrix;
use crate::quantize::Role;
use crate::spec::{ExpertsSpec, LayerSpec};

/// Weights of experts.
#[derive(Debug)]
pub struct ExpertWeights {
    /// `[count, hidden]`
    pub router: Linear,
    /// `[1, hidden]`: its sigmoid is the weight of the shared network.
    pub shared_router: Option<Linear>,
    /// `[count]`: added to scores for choosing alone.
    pub correction: Option<Vec<f32>>,
    /// `[count]`: factor of each expert's weight.
    pub expert_scale: Option<Vec<f32>>,
    pub experts: MlpWeights,
    /// The network that every row uses.
    pub shared: Option<MlpWeights>,
}

/// The matrices of experts, in the order in which a step reads them.
pub(super) fn add_needed(
    needed: &mut Vec<Needed>,
    layer: &LayerSpec,
    experts: &ExpertsSpec,
    hidden: usize,
) {
    let (count, inner) = (experts.count, experts.intermediate_size);
    needed.push(Needed::whole("router", Role::Router, count, hidden));
    if layer.has("shared_router") {
        needed.push(Needed::whole("shared_router", Role::Router, 1, hidden));
    }
    let mut of_each = |role, sensitivity, outputs, inputs| {
        needed.push(Needed {
            role,
            sensitivity,
            outputs: count * outputs,
            segment: outputs,
            inputs,
        });
    };
    if layer.has("experts.gate") {
        of_each("experts.gate", Role::Other, inner, hidden);
    }
    of_each("experts.up", Role::Other, inner, hidden);
    of_each("experts.down", Role::Sensitive, hidden, inner);
    if let Some(shared) = &experts.shared {
        let inner = shared.intermediate_size;
        if layer.has("shared.gate") {
            needed.push(Needed::whole("shared.gate", Role::Other, inner, hidden));
        }
        needed.push(Needed::whole("shared.up", Role::Other, inner, hidden));
        needed.push(Needed::whole("shared.down", Role::Sensitive, hidden, inner));
    }
}

impl ExpertWeights {
    /// The matrices that the rows' inputs are multiplied with; some are named twice.
    pub fn users(&self) -> [&Linear; 6] {
        let shared = self.shared.as_ref().unwrap_or(&self.experts);
        [
            &self.router,
            self.shared_router.as_ref().unwrap_or(&self.router),
            self.experts.gate.as_ref().unwrap_or(&self.experts.up),
            &self.experts.up,
            shared.gate.as_ref().unwrap_or(&shared.up),
            &shared.up,
        ]
    }
}

impl Plan<'_> {
    /// Assemble a layer's experts.
    pub(super) fn experts(
        &mut self,
        layer: &LayerSpec,
        index: usize,
        experts: &ExpertsSpec,
        matrices: &[PackedMatrix],
    ) -> Result<ExpertWeights, KernelError> {
        let of_experts = ["experts.gate", "experts.up", "experts.down"];
        let of_shared = ["shared.gate", "shared.up", "shared.down"];
        Ok(ExpertWeights {
            router: self.needed_linear(layer, index, "router", matrices)?,
            shared_router: self.layer_linear(layer, index, "shared_router", matrices)?,
            correction: self.vector(&layer.tensors, "router_correction", experts.count)?,
            expert_scale: self.vector(&layer.tensors, "router_scale", experts.count)?,
            experts: self.mlp(layer, index, of_experts, matrices)?,
            shared: match experts.shared {
                Some(_) => Some(self.mlp(layer, index, of_shared, matrices)?),
                None => None,
            },
        })
    }
}
