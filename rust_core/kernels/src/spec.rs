//! A decoder-only language model described layer by layer; mirrors `engine/models/spec.py`, which documents every field.
//!
//! The JSON is produced by Python from an untrusted model file, and memory is sized by it. [`ModelSpec::from_json`] therefore
//! validates every field again and rejects an invalid one with one sentence. Which weights a layer has is said by its
//! [`Tensors`]: what is absent is not computed.

mod attention;
mod checks;
mod feed_forward;
mod mixer;
mod rope;
mod tensor_ref;
#[cfg(test)]
pub(crate) mod tests;

use serde::Deserialize;

use self::checks::{bounded, not_negative, positive};
use crate::error::KernelError;
use crate::format::Quantization;
use crate::recurrent::states::LayerState;

pub use self::attention::{AttentionSpec, QueryTemperature};
pub use self::feed_forward::{
    Activation, ExpertsSpec, FeedForwardSpec, MAX_USED_EXPERTS, MlpSpec, RoutingScores, RoutingSpec,
};
pub use self::mixer::{GatedDeltaNetSpec, Mamba2Spec, MixerSpec, ShortConvSpec};
pub use self::rope::{RopeScaling, RopeScalingKind, RopeSpec, RopeStyle};
pub use self::tensor_ref::{RowRange, TensorRef, Tensors};

/// Largest accepted width. The product of any two widths fits `usize`.
const MAX_WIDTH: usize = 1 << 20;
const MAX_LAYERS: usize = 4096;
const MAX_VOCAB: usize = 1 << 24;
const MAX_CONTEXT: usize = 1 << 28;

/// Most heads of a layer.
const MAX_HEADS: usize = 1024;

/// Largest head dimension supported by the stack buffers of the attention kernels.
pub const MAX_HEAD_DIM: usize = 512;

/// Most residual streams.
pub const MAX_STREAMS: usize = 4;

/// Several residual streams, of which layers compute one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamsSpec {
    pub count: usize,
    /// The one that layers compute.
    pub active: usize,
}

/// Norm of the hidden state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormKind {
    Rms,
    Layer,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerSpec {
    pub mixer: Option<MixerSpec>,
    pub ffn: Option<FeedForwardSpec>,
    pub tensors: Tensors,
}

impl LayerSpec {
    /// The mixer, if it is attention.
    pub fn attention(&self) -> Option<&AttentionSpec> {
        match &self.mixer {
            Some(MixerSpec::Attention(attention)) => Some(attention),
            _ => None,
        }
    }

    /// What a sequence leaves behind in this layer besides keys and values.
    pub fn state(&self, hidden: usize) -> LayerState {
        let mixer = self.mixer.as_ref();
        mixer.map_or(LayerState::default(), |mixer| mixer.state(hidden))
    }

    /// Widest activations of the feed-forward; 0 if there is none.
    pub fn intermediate_size(&self) -> usize {
        match &self.ffn {
            Some(FeedForwardSpec::Mlp(mlp)) => mlp.intermediate_size,
            Some(FeedForwardSpec::Experts(experts)) => experts
                .shared
                .as_ref()
                .map_or(0, |shared| shared.intermediate_size),
            None => 0,
        }
    }

    /// Whether gates of the feed-forward are cut.
    pub fn cuts_gates(&self) -> bool {
        matches!(&self.ffn, Some(FeedForwardSpec::Mlp(mlp)) if mlp.cutoff.is_some())
    }

    pub fn has(&self, role: &str) -> bool {
        self.tensors.contains_key(role)
    }
}

/// Layers of the KV cache whose readers all have a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// Tokens of the largest window; 0 if there is no such layer.
    pub tokens: usize,
    /// For each layer of the KV cache, whether it is one.
    pub layers: Vec<bool>,
}

/// Same fields as `ModelSpec` in `engine/models/spec.py`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// For messages only.
    pub architecture: String,
    pub hidden_size: usize,
    pub vocab_size: usize,
    pub context_length: usize,
    pub norm_eps: f32,
    pub ropes: Vec<RopeSpec>,
    pub layers: Vec<LayerSpec>,
    pub tensors: Tensors,
    pub norm: NormKind,
    pub embedding_multiplier: f32,
    pub residual_multiplier: f32,
    pub logit_multiplier: f32,
    pub logit_softcap: f32,
    pub per_layer_width: usize,
    /// None for a single residual stream.
    #[serde(default)]
    pub streams: Option<StreamsSpec>,
    /// Inner width of what layers add beside their mixers; 0 for none.
    #[serde(default)]
    pub laurel_rank: usize,
    /// How a checkpoint stores quantised matrices; None for ordinary tensors.
    #[serde(default)]
    pub quantization: Option<Quantization>,
}

impl ModelSpec {
    /// Parse and validate the JSON written by `ModelSpec.to_json`.
    pub fn from_json(text: &str) -> Result<Self, KernelError> {
        let spec: Self = serde_json::from_str(text).map_err(|error| {
            KernelError::model(format!("The model's spec is not readable: {error}."))
        })?;
        spec.validate()?;
        Ok(spec)
    }

    fn validate(&self) -> Result<(), KernelError> {
        bounded("layer count", self.layers.len(), MAX_LAYERS)?;
        bounded("hidden size", self.hidden_size, MAX_WIDTH)?;
        bounded("vocabulary size", self.vocab_size, MAX_VOCAB)?;
        bounded("context length", self.context_length, MAX_CONTEXT)?;
        not_negative("norm epsilon", self.norm_eps)?;
        not_negative("logit soft-cap", self.logit_softcap)?;
        for (name, value) in [
            ("embedding multiplier", self.embedding_multiplier),
            ("residual multiplier", self.residual_multiplier),
            ("logit multiplier", self.logit_multiplier),
        ] {
            positive(name, f64::from(value))?;
        }
        if self.per_layer_width > MAX_WIDTH {
            bounded("per-layer width", self.per_layer_width, MAX_WIDTH)?;
        }
        if self.laurel_rank > MAX_WIDTH {
            bounded("rank beside mixers", self.laurel_rank, MAX_WIDTH)?;
        }
        if let Some(streams) = self.streams
            && !((2..=MAX_STREAMS).contains(&streams.count) && streams.active < streams.count)
        {
            return Err(KernelError::model(format!(
                "The model computes stream {} of {}; it may have 2 to {MAX_STREAMS}.",
                streams.active, streams.count
            )));
        }
        for rope in &self.ropes {
            rope.validate()?;
        }
        if self.attentions().next().is_none() {
            return Err(KernelError::model(
                "The model has no layer with attention; the executor needs one.",
            ));
        }
        for tensor in self.tensors.values() {
            tensor.validate()?;
        }
        for (index, layer) in self.layers.iter().enumerate() {
            for tensor in layer.tensors.values() {
                tensor.validate()?;
            }
            if self.streams.is_some() && layer.has("output_scale") {
                return Err(KernelError::model(
                    "The model scales the results of layers with several residual streams.",
                ));
            }
            if let Some(ffn) = &layer.ffn {
                ffn.validate()?;
                if layer.has("experts_norm") && !ffn.has_shared_network() {
                    return Err(KernelError::model(format!(
                        "Layer {index} of the model has norms for experts beside a network that it has not."
                    )));
                }
            }
            if let Some(mixer) = &layer.mixer {
                mixer.validate()?;
                if self.norm == NormKind::Layer && self.laurel_rank > 0 {
                    return Err(KernelError::model(
                        "The model adds a product beside its mixers, which needs RMS norms.",
                    ));
                }
                if self.norm == NormKind::Layer && mixer.heads().is_some() {
                    return Err(KernelError::model(
                        "The model has heads with a state, whose outputs need RMS norms.",
                    ));
                }
            }
            if let Some(attention) = layer.attention() {
                self.validate_references(index, attention)?;
            }
        }
        Ok(())
    }

    /// Check what the attention of layer `index` names elsewhere in the model.
    fn validate_references(
        &self,
        index: usize,
        attention: &AttentionSpec,
    ) -> Result<(), KernelError> {
        if let Some(rope) = attention.rope {
            let Some(rope) = self.ropes.get(rope) else {
                return Err(KernelError::model(format!(
                    "Layer {index} of the model names rotary embedding {rope}, of {}.",
                    self.ropes.len()
                )));
            };
            if rope.dim > attention.head_dim {
                return Err(KernelError::model(format!(
                    "Layer {index} of the model has heads of {} dimensions, of which its rotary embedding pairs {}.",
                    attention.head_dim, rope.dim
                )));
            }
        }
        if let Some(source) = attention.kv_layer {
            let earlier = self.layers[..index]
                .get(source)
                .and_then(LayerSpec::attention);
            let same = earlier.is_some_and(|other| {
                other.kv_layer.is_none()
                    && (other.num_kv_heads, other.head_dim)
                        == (attention.num_kv_heads, attention.head_dim)
            });
            if !same {
                return Err(KernelError::model(format!(
                    "Layer {index} of the model reads the keys of layer {source}, which has no such keys."
                )));
            }
        }
        Ok(())
    }

    /// The attention layers, with their indices.
    pub fn attentions(&self) -> impl Iterator<Item = (usize, &AttentionSpec)> {
        let layers = self.layers.iter().enumerate();
        layers.filter_map(|(index, layer)| Some((index, layer.attention()?)))
    }

    /// The attention layers that compute keys and values of their own, in order: the layers of the KV cache.
    pub fn cached_attentions(&self) -> impl Iterator<Item = (usize, &AttentionSpec)> {
        let own = |(_, attention): &(usize, &AttentionSpec)| attention.kv_layer.is_none();
        self.attentions().filter(own)
    }

    /// Where in the KV cache the keys and values are that layer `layer` reads.
    pub fn cache_layer(&self, layer: usize) -> usize {
        let attention = self.layers[layer].attention();
        let source = attention.and_then(|attention| attention.kv_layer);
        let owner = source.unwrap_or(layer);
        self.cached_attentions()
            .take_while(|(index, _)| *index < owner)
            .count()
    }

    /// The layers of the KV cache that need to keep a window only, in a context of `context` tokens: all that have one,
    /// but not the first if all do, since a block is a block of some layer. None if a sequence also has a state.
    pub fn windows(&self, context: usize) -> Windows {
        let mut layers = vec![true; self.cached_attentions().count()];
        for (layer, attention) in self.attentions() {
            if attention.window == 0 || attention.window >= context {
                layers[self.cache_layer(layer)] = false;
            }
        }
        if layers.iter().all(|&windowed| windowed) {
            layers[0] = false;
        }
        if self.has_states() {
            layers.fill(false);
        }
        let tokens = self.attentions().map(|(layer, attention)| {
            let windowed = layers[self.cache_layer(layer)];
            if windowed { attention.window } else { 0 }
        });
        let tokens = tokens.max().unwrap_or(0);
        Windows { tokens, layers }
    }

    /// What a sequence leaves behind in each layer besides keys and values.
    pub fn states(&self) -> Vec<LayerState> {
        let layers = self.layers.iter();
        layers.map(|layer| layer.state(self.hidden_size)).collect()
    }

    /// Whether a mixer is recurrent, so that a sequence has a state.
    pub fn has_states(&self) -> bool {
        let mut mixers = self.layers.iter().filter_map(|layer| layer.mixer.as_ref());
        mixers.any(|mixer| !matches!(mixer, MixerSpec::Attention(_)))
    }

    /// The LM head is the embedding matrix.
    pub fn tied_embeddings(&self) -> bool {
        !self.tensors.contains_key("lm_head")
    }
}
