//! The weights of one layer: which matrices its description needs, and their assembly once they are packed.

use super::experts::ExpertWeights;
use super::plan::{Needed, Plan};
use super::recurrent::{ShortConvWeights, StateHeadsWeights};
use super::streams::{LaurelWeights, StreamWeights, needed_laurel};
use super::{Linear, Norm, missing};
use crate::error::KernelError;
use crate::pack::PackedMatrix;
use crate::quantize::Role;
use crate::spec::{AttentionSpec, FeedForwardSpec, LayerSpec, MixerSpec, ModelSpec};

/// Weights of one layer.
#[derive(Debug)]
pub struct LayerWeights {
    /// Norm of the mixer's input.
    pub mixer_norm: Option<Norm>,
    pub mixer: Option<MixerWeights>,
    /// Norm of the mixer's output, before it is added to the residual stream.
    pub mixer_post_norm: Option<Vec<f32>>,
    pub ffn_norm: Option<Norm>,
    pub ffn: Option<FeedForwardWeights>,
    pub ffn_post_norm: Option<Vec<f32>>,
    pub per_layer: Option<PerLayerWeights>,
    /// None for a single residual stream.
    pub streams: Option<StreamWeights>,
    /// What is added beside the mixer.
    pub laurel: Option<LaurelWeights>,
    /// Factor of the layer's result.
    pub output_scale: f32,
}

/// Weights of a mixer.
#[derive(Debug)]
pub enum MixerWeights {
    Attention(AttentionWeights),
    ShortConv(ShortConvWeights),
    StateHeads(StateHeadsWeights),
}

/// Weights of attention.
#[derive(Debug)]
pub struct AttentionWeights {
    /// Packed with one segment per head, as are `k`, `v` and `gate`.
    pub q: Linear,
    /// None if the keys of another layer are read.
    pub k: Option<Linear>,
    /// None if the projected keys are the values.
    pub v: Option<Linear>,
    /// Its sigmoid multiplies the heads' outputs.
    pub gate: Option<Linear>,
    pub o: Linear,
    /// Of each head, or of all heads together.
    pub q_norm: Option<Vec<f32>>,
    pub k_norm: Option<Vec<f32>>,
    /// Ones, where value heads are normalized without weights.
    pub v_norm: Option<Vec<f32>>,
    /// One score per query head that takes part in the softmax, without a value.
    pub sinks: Option<Vec<f32>>,
    /// Index of the layer's keys and values in the KV cache.
    pub cache: usize,
}

/// Weights of a feed-forward.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one a layer")]
pub enum FeedForwardWeights {
    Mlp(MlpWeights),
    Experts(ExpertWeights),
}

/// Weights of one network, or of all experts, one after another.
#[derive(Debug)]
pub struct MlpWeights {
    /// None if it is not gated.
    pub gate: Option<Linear>,
    pub up: Linear,
    pub down: Linear,
}

impl MlpWeights {
    /// The matrices that the rows' inputs are multiplied with; one is named twice if there is no gate.
    pub fn inputs(&self) -> [&Linear; 2] {
        [self.gate.as_ref().unwrap_or(&self.up), &self.up]
    }
}

/// How a layer adds its own embedding of each token (Gemma 3n, 4).
#[derive(Debug)]
pub struct PerLayerWeights {
    /// `[width, hidden]`
    pub gate: Linear,
    /// `[hidden, width]`
    pub projection: Linear,
    /// Of the projection's output.
    pub norm: Vec<f32>,
}

/// The matrices of a layer, in the order in which a step reads them.
pub(super) fn needed(spec: &ModelSpec, layer: &LayerSpec) -> Vec<Needed> {
    let hidden = spec.hidden_size;
    let mut needed = Vec::new();
    if spec.laurel_rank > 0 {
        needed.extend(needed_laurel(spec));
    }
    match &layer.mixer {
        Some(MixerSpec::Attention(attention)) => {
            add_attention(&mut needed, layer, attention, hidden);
        }
        Some(mixer) => needed.extend(super::recurrent::needed(mixer, hidden)),
        None => {}
    }
    match &layer.ffn {
        Some(FeedForwardSpec::Mlp(mlp)) => {
            let inner = mlp.intermediate_size;
            if layer.has("gate") {
                needed.push(Needed::whole("gate", Role::Other, inner, hidden));
            }
            needed.push(Needed::whole("up", Role::Other, inner, hidden));
            needed.push(Needed::whole("down", Role::Sensitive, hidden, inner));
        }
        Some(FeedForwardSpec::Experts(experts)) => {
            super::experts::add_needed(&mut needed, layer, experts, hidden);
        }
        None => {}
    }
    if layer.has("per_layer_gate") {
        let width = spec.per_layer_width;
        needed.push(Needed::whole("per_layer_gate", Role::Other, width, hidden));
        needed.push(Needed::whole(
            "per_layer_projection",
            Role::Other,
            hidden,
            width,
        ));
    }
    needed
}

/// The role of the norm of a projection's outputs, in layers that have it.
pub(super) fn norm_after(role: &str) -> Option<&'static str> {
    match role {
        "o" => Some("mixer_post_norm"),
        "down" | "experts.down" | "shared.down" => Some("ffn_post_norm"),
        "per_layer_projection" => Some("per_layer_norm"),
        _ => None,
    }
}

fn add_attention(
    needed: &mut Vec<Needed>,
    layer: &LayerSpec,
    attention: &AttentionSpec,
    hidden: usize,
) {
    let dim = attention.head_dim;
    let (queries, keys) = (attention.num_heads * dim, attention.num_kv_heads * dim);
    let mut heads = |role, sensitivity, outputs| {
        needed.push(Needed {
            role,
            sensitivity,
            outputs,
            segment: dim,
            inputs: hidden,
        });
    };
    heads("q", Role::Other, queries);
    if attention.kv_layer.is_none() {
        heads("k", Role::Other, keys);
        if layer.has("v") {
            heads("v", Role::Sensitive, keys);
        }
    }
    if layer.has("attention_gate") {
        heads("attention_gate", Role::Other, queries);
    }
    needed.push(Needed::whole("o", Role::Other, hidden, queries));
}

impl Plan<'_> {
    /// Assemble a layer from its packed matrices and its vectors.
    pub fn finish_layer(
        &mut self,
        spec: &ModelSpec,
        index: usize,
        matrices: &[PackedMatrix],
    ) -> Result<LayerWeights, KernelError> {
        let (layer, hidden) = (&spec.layers[index], spec.hidden_size);
        let tensors = &layer.tensors;
        let mixer = match &layer.mixer {
            Some(MixerSpec::Attention(attention)) => Some(MixerWeights::Attention(
                self.attention(spec, index, attention, matrices)?,
            )),
            Some(mixer) => Some(self.recurrent(spec, index, mixer, matrices)?),
            None => None,
        };
        let ffn = match &layer.ffn {
            Some(FeedForwardSpec::Mlp(_)) => Some(FeedForwardWeights::Mlp(self.mlp(
                layer,
                index,
                ["gate", "up", "down"],
                matrices,
            )?)),
            Some(FeedForwardSpec::Experts(experts)) => Some(FeedForwardWeights::Experts(
                self.experts(layer, index, (experts, hidden), matrices)?,
            )),
            None => None,
        };
        let per_layer = match self.layer_linear(layer, index, "per_layer_gate", matrices)? {
            Some(gate) => Some(PerLayerWeights {
                gate,
                projection: self.needed_linear(layer, index, "per_layer_projection", matrices)?,
                norm: self
                    .vector(tensors, "per_layer_norm", hidden)?
                    .ok_or_else(|| missing("per_layer_norm"))?,
            }),
            None => None,
        };
        let streams = match spec.streams {
            Some(streams) => Some(self.streams(tensors, streams.count, hidden)?),
            None => None,
        };
        let laurel = match spec.laurel_rank {
            0 => None,
            _ => Some(self.laurel(layer, index, hidden, matrices)?),
        };
        let output_scale = self.vector(tensors, "output_scale", 1)?;
        Ok(LayerWeights {
            mixer_norm: self.norm(tensors, "mixer_norm", hidden)?,
            mixer,
            mixer_post_norm: self.vector(tensors, "mixer_post_norm", hidden)?,
            ffn_norm: self.norm(tensors, "ffn_norm", hidden)?,
            ffn,
            ffn_post_norm: self.vector(tensors, "ffn_post_norm", hidden)?,
            per_layer,
            streams,
            laurel,
            output_scale: output_scale.map_or(1.0, |scale| scale[0]),
        })
    }

    fn attention(
        &mut self,
        spec: &ModelSpec,
        index: usize,
        attention: &AttentionSpec,
        matrices: &[PackedMatrix],
    ) -> Result<AttentionWeights, KernelError> {
        let layer = &spec.layers[index];
        let (tensors, dim) = (&layer.tensors, attention.head_dim);
        let normed = |heads: usize| match attention.qk_norm_whole {
            true => heads * dim,
            false => dim,
        };
        Ok(AttentionWeights {
            q: self.needed_linear(layer, index, "q", matrices)?,
            k: self.layer_linear(layer, index, "k", matrices)?,
            v: self.layer_linear(layer, index, "v", matrices)?,
            gate: self.layer_linear(layer, index, "attention_gate", matrices)?,
            o: self.needed_linear(layer, index, "o", matrices)?,
            q_norm: self.vector(tensors, "q_norm", normed(attention.num_heads))?,
            k_norm: match attention.kv_layer {
                None => self.vector(tensors, "k_norm", normed(attention.num_kv_heads))?,
                Some(_) => None,
            },
            v_norm: attention.value_norm.then(|| vec![1.0; dim]),
            sinks: self.vector(tensors, "sinks", attention.num_heads)?,
            cache: spec.cache_layer(index),
        })
    }

    /// A network's matrices, of these roles.
    pub(super) fn mlp(
        &mut self,
        layer: &LayerSpec,
        index: usize,
        [gate, up, down]: [&str; 3],
        matrices: &[PackedMatrix],
    ) -> Result<MlpWeights, KernelError> {
        Ok(MlpWeights {
            gate: self.layer_linear(layer, index, gate, matrices)?,
            up: self.needed_linear(layer, index, up, matrices)?,
            down: self.needed_linear(layer, index, down, matrices)?,
        })
    }

    fn recurrent(
        &mut self,
        spec: &ModelSpec,
        index: usize,
        mixer: &MixerSpec,
        matrices: &[PackedMatrix],
    ) -> Result<MixerWeights, KernelError> {
        let (layer, kernel) = ((&spec.layers[index], index), mixer.kernel());
        Ok(match mixer.heads() {
            None => {
                let hidden = spec.hidden_size;
                MixerWeights::ShortConv(self.short_conv(layer, matrices, kernel, hidden)?)
            }
            Some(heads) => {
                let eps = spec.norm_eps;
                MixerWeights::StateHeads(self.state_heads(layer, matrices, heads, kernel, eps)?)
            }
        })
    }

    /// A layer's packed matrix with its bias; None if the layer has none of this role.
    pub(super) fn layer_linear(
        &mut self,
        layer: &LayerSpec,
        index: usize,
        role: &str,
        matrices: &[PackedMatrix],
    ) -> Result<Option<Linear>, KernelError> {
        let entry = self.of_layer(index, role);
        entry
            .map(|entry| self.linear(&layer.tensors, role, matrices[entry]))
            .transpose()
    }

    pub(super) fn needed_linear(
        &mut self,
        layer: &LayerSpec,
        index: usize,
        role: &str,
        matrices: &[PackedMatrix],
    ) -> Result<Linear, KernelError> {
        let linear = self.layer_linear(layer, index, role, matrices)?;
        linear.ok_or_else(|| missing(role))
    }
}
