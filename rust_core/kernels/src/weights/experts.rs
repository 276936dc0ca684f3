//! The weights of a layer's experts.
//!
//! The networks of all experts are one matrix per role, with a segment for each expert: expert `e` has panels
//! `e * segment_panels` and following. Pages of experts that no row uses are never touched after loading.

use super::layer::MlpWeights;
use super::plan::{Needed, Plan};
use super::{Linear, Norm, missing};
use crate::error::KernelError;
use crate::pack::PackedMatrix;
use crate::quantize::Role;
use crate::spec::{ExpertsSpec, LayerSpec, Tensors};

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
    /// None if all have the layer's norm before, and none after.
    pub own_norms: Option<OwnNorms>,
}

/// Norms of experts beside a shared network, whose input alone has the layer's norm (Gemma 4).
#[derive(Debug)]
pub struct OwnNorms {
    /// Of the router's input.
    pub router: Norm,
    /// Of the experts' input.
    pub experts: Norm,
    /// Of the experts' output.
    pub experts_post: Vec<f32>,
    /// Of the shared network's output.
    pub shared_post: Vec<f32>,
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
        let [router, shared_router] = self.routers();
        let [gate, up] = self.experts.inputs();
        let shared = self.shared.as_ref().unwrap_or(&self.experts);
        let [shared_gate, shared_up] = shared.inputs();
        [router, shared_router, gate, up, shared_gate, shared_up]
    }

    /// The routers' matrices; named twice if there is one.
    pub fn routers(&self) -> [&Linear; 2] {
        let shared = self.shared_router.as_ref();
        [&self.router, shared.unwrap_or(&self.router)]
    }
}

impl Plan<'_> {
    /// Assemble a layer's experts.
    pub(super) fn experts(
        &mut self,
        layer: &LayerSpec,
        index: usize,
        (experts, hidden): (&ExpertsSpec, usize),
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
            own_norms: self.own_norms(&layer.tensors, hidden)?,
        })
    }

    fn own_norms(
        &mut self,
        tensors: &Tensors,
        hidden: usize,
    ) -> Result<Option<OwnNorms>, KernelError> {
        let Some(experts) = self.norm(tensors, "experts_norm", hidden)? else {
            return Ok(None);
        };
        let router = self.norm(tensors, "router_norm", hidden)?;
        let experts_post = self.vector(tensors, "experts_post_norm", hidden)?;
        let shared_post = self.vector(tensors, "shared_post_norm", hidden)?;
        Ok(Some(OwnNorms {
            router: router.ok_or_else(|| missing("router_norm"))?,
            experts,
            experts_post: experts_post.ok_or_else(|| missing("experts_post_norm"))?,
            shared_post: shared_post.ok_or_else(|| missing("shared_post_norm"))?,
        }))
    }
}
