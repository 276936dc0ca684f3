//! A decoder-only language model described layer by layer; mirrors `engine/models/spec.py`, which documents every field.
//!
//! The JSON is produced by Python from an untrusted model file, and memory is sized by it. [`ModelSpec::from_json`] therefore
//! validates every field again and rejects an invalid one with one sentence. Which weights a layer has is said by its
//! [`Tensors`]: what is absent is not computed.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::error::KernelError;
use crate::format::Scheme;
use crate::pack::PANEL_COLUMNS;
use crate::recurrent::conv::MAX_KERNEL;
use crate::recurrent::head::Heads;
use crate::recurrent::scan::HeadShape;
use crate::recurrent::states::LayerState;

/// Largest accepted width. The product of any two widths fits `usize`.
const MAX_WIDTH: usize = 1 << 20;
const MAX_LAYERS: usize = 4096;
const MAX_VOCAB: usize = 1 << 24;
const MAX_CONTEXT: usize = 1 << 28;
const MAX_EXPERTS: usize = 1 << 16;

/// Most experts that a token uses, and most groups from which they are chosen.
pub const MAX_USED_EXPERTS: usize = 64;

/// Most heads with a state of a layer.
const MAX_STATE_HEADS: usize = 1024;

/// Largest head dimension supported by the stack buffers of the attention kernels.
pub const MAX_HEAD_DIM: usize = 512;

/// Which elements of a head form a rotary pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RopeStyle {
    /// Pairs `(i, i + d/2)`: Hugging Face checkpoints and most GGUF files.
    Half,
    /// Pairs `(2i, 2i + 1)`: llama-family GGUF files.
    Interleaved,
}

/// How rotary frequencies are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RopeScalingKind {
    None,
    Linear,
    Llama3,
    Yarn,
    Longrope,
}

/// Parameters of [`RopeScalingKind`]. Parameters that a kind does not use are ignored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RopeScaling {
    pub kind: RopeScalingKind,
    pub factor: f64,
    pub original_context: usize,
    pub low_freq_factor: f64,
    pub high_freq_factor: f64,
    pub beta_fast: f64,
    pub beta_slow: f64,
    pub truncate: bool,
    pub attention_factor: Option<f64>,
    /// One per pair; longrope only.
    pub short_divisors: Vec<f64>,
    pub long_divisors: Vec<f64>,
}

/// A rotary position embedding, used by the layers that name it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RopeSpec {
    pub theta: f64,
    /// Leading elements of a head among which pairs are formed.
    pub dim: usize,
    pub style: RopeStyle,
    pub scaling: RopeScaling,
    /// Pairs that are rotated, from the first on; None for all.
    pub pairs: Option<usize>,
    /// One per rotated pair, or empty.
    pub divisors: Vec<f64>,
}

impl RopeSpec {
    /// Pairs that are rotated.
    pub fn rotated_pairs(&self) -> usize {
        self.pairs.unwrap_or(self.dim / 2)
    }
}

/// Where a weight is stored: row `j` of it is row `start + j / run * step + j % run` of the tensor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorRef {
    pub name: String,
    pub start: usize,
    /// Rows taken together; 0 for all.
    pub run: usize,
    pub step: usize,
    /// Stored as `[inputs, outputs]`; floats only.
    pub transposed: bool,
    /// Added to each element; vectors only.
    pub add: f32,
    /// Tensors that are taken together, row after row, `name` having `{}` for their index; 0 for a single one.
    pub parts: usize,
}

/// Role of a weight to where it is stored; `engine/models/spec.py` lists the roles.
pub type Tensors = BTreeMap<String, TensorRef>;

/// Kind of activation of a feed-forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    Silu,
    GeluTanh,
    Gelu,
    Relu2,
    SwigluClamped,
}

/// Norm of the hidden state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormKind {
    Rms,
    Layer,
}

/// Factor of queries: `1 + beta * ln(1 + floor(position / original_context))`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryTemperature {
    pub beta: f32,
    pub original_context: usize,
}

/// Softmax attention of some heads.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttentionSpec {
    pub num_heads: usize,
    pub num_kv_heads: usize,
    pub head_dim: usize,
    pub scale: f32,
    /// Index into [`ModelSpec::ropes`].
    pub rope: Option<usize>,
    /// 0 for full attention, n for the last n tokens including the current one.
    pub window: usize,
    pub qk_norm_whole: bool,
    pub value_norm: bool,
    pub softcap: f32,
    /// An earlier layer whose keys and values are read.
    pub kv_layer: Option<usize>,
    pub temperature: Option<QueryTemperature>,
}

impl AttentionSpec {
    /// Query heads that share one KV head.
    pub fn group_size(&self) -> usize {
        self.num_heads / self.num_kv_heads
    }
}

/// How tokens exchange information.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MixerSpec {
    Attention(AttentionSpec),
    ShortConv(ShortConvSpec),
    GatedDeltaNet(GatedDeltaNetSpec),
    Mamba2(Mamba2Spec),
}

/// A gated short convolution of the hidden state.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShortConvSpec {
    pub kernel: usize,
}

/// Linear attention with a state that decays and is corrected by the delta rule.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatedDeltaNetSpec {
    pub kernel: usize,
    pub num_heads: usize,
    pub num_key_heads: usize,
    pub key_dim: usize,
    pub value_dim: usize,
    /// Head `h` has key `h % num_key_heads`; otherwise neighbouring heads share one.
    pub tiled: bool,
}

/// A selective state space model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mamba2Spec {
    pub kernel: usize,
    pub num_heads: usize,
    pub num_groups: usize,
    pub head_dim: usize,
    pub state_dim: usize,
}

impl MixerSpec {
    /// The heads of a mixer whose state includes matrices.
    pub fn heads(&self) -> Option<Heads> {
        match self {
            Self::Attention(_) | Self::ShortConv(_) => None,
            Self::GatedDeltaNet(net) => Some(Heads {
                shape: HeadShape {
                    key_dim: net.key_dim,
                    value_dim: net.value_dim,
                    delta: true,
                },
                count: net.num_heads,
                key_count: net.num_key_heads,
                tiled: net.tiled,
            }),
            Self::Mamba2(mamba) => Some(Heads {
                shape: HeadShape {
                    key_dim: mamba.state_dim,
                    value_dim: mamba.head_dim,
                    delta: false,
                },
                count: mamba.num_heads,
                key_count: mamba.num_groups,
                tiled: false,
            }),
        }
    }

    /// Kernel of the convolution; 0 if there is none.
    pub fn kernel(&self) -> usize {
        match self {
            Self::Attention(_) => 0,
            Self::ShortConv(conv) => conv.kernel,
            Self::GatedDeltaNet(net) => net.kernel,
            Self::Mamba2(mamba) => mamba.kernel,
        }
    }

    /// Width of the outputs of a recurrent mixer; 0 for attention.
    pub fn recurrent_outputs(&self, hidden: usize) -> usize {
        match self {
            Self::Attention(_) => 0,
            _ => self.heads().map_or(hidden, |heads| heads.outputs()),
        }
    }

    /// What a sequence leaves behind in a layer of `hidden` channels besides keys and values.
    pub fn state(&self, hidden: usize) -> LayerState {
        let (heads, kernel) = (self.heads(), self.kernel());
        let channels = heads.map_or(hidden, |heads| heads.channels());
        LayerState {
            conv: kernel.saturating_sub(1) * channels.next_multiple_of(PANEL_COLUMNS),
            heads: heads.map_or(0, |heads| heads.count * heads.shape.state_len()),
        }
    }

    fn validate(&self) -> Result<(), KernelError> {
        let kernel = self.kernel();
        if matches!(self, Self::Attention(_)) {
            return Ok(());
        }
        bounded("convolution's kernel", kernel, MAX_KERNEL)?;
        let Some(heads) = self.heads() else {
            return Ok(());
        };
        bounded("head count", heads.count, MAX_STATE_HEADS)?;
        bounded("count of heads with keys", heads.key_count, heads.count)?;
        bounded("state's key dimension", heads.shape.key_dim, MAX_HEAD_DIM)?;
        bounded(
            "state's value dimension",
            heads.shape.value_dim,
            MAX_HEAD_DIM,
        )?;
        bounded("convolution's width", heads.channels(), MAX_WIDTH)?;
        if !heads.count.is_multiple_of(heads.key_count) {
            return Err(KernelError::model(format!(
                "The model has {} heads with a state, which {} keys cannot share evenly.",
                heads.count, heads.key_count
            )));
        }
        Ok(())
    }
}

/// A feed-forward network; gated if the layer has a `gate`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpSpec {
    pub intermediate_size: usize,
    pub activation: Activation,
}

/// What scores of experts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoutingScores {
    /// Softmax over all experts.
    Softmax,
    /// Logits; the weights are their softmax over the chosen experts.
    SoftmaxOfUsed,
    Sigmoid,
}

/// How a router's logits choose experts and weigh them.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutingSpec {
    pub scores: RoutingScores,
    /// The weights of the chosen experts are divided by their sum.
    pub renormalise: bool,
    /// Factor of the weights.
    pub scale: f32,
    pub logit_scale: f32,
    /// Equal groups of neighbouring experts, of which some are chosen first.
    pub groups: usize,
    pub used_groups: usize,
}

/// Feed-forward networks of which each token uses a few; gated if the layer has `experts.gate`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ExpertsSpec {
    pub count: usize,
    pub used: usize,
    /// Of each expert.
    pub intermediate_size: usize,
    pub routing: RoutingSpec,
    pub activation: Activation,
    /// A network that every token uses besides.
    #[serde(deserialize_with = "shared_network")]
    pub shared: Option<MlpSpec>,
}

/// Read the shared network of experts, which states its kind as any feed-forward does.
fn shared_network<'de, D: Deserializer<'de>>(from: D) -> Result<Option<MlpSpec>, D::Error> {
    match Option::<FeedForwardSpec>::deserialize(from)? {
        None => Ok(None),
        Some(FeedForwardSpec::Mlp(mlp)) => Ok(Some(mlp)),
        Some(FeedForwardSpec::Experts(_)) => Err(D::Error::custom("the shared network is an mlp")),
    }
}

/// What a layer does to each token.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FeedForwardSpec {
    Mlp(MlpSpec),
    Experts(ExpertsSpec),
}

impl FeedForwardSpec {
    fn validate(&self) -> Result<(), KernelError> {
        match self {
            Self::Mlp(mlp) => mlp.validate(),
            Self::Experts(experts) => experts.validate(),
        }
    }
}

impl MlpSpec {
    fn validate(&self) -> Result<(), KernelError> {
        bounded("intermediate size", self.intermediate_size, MAX_WIDTH)
    }
}

impl ExpertsSpec {
    fn validate(&self) -> Result<(), KernelError> {
        bounded("expert count", self.count, MAX_EXPERTS)?;
        bounded(
            "number of experts that a token uses",
            self.used,
            self.count.min(MAX_USED_EXPERTS),
        )?;
        bounded(
            "experts' intermediate size",
            self.intermediate_size,
            MAX_WIDTH,
        )?;
        if let Some(shared) = &self.shared {
            shared.validate()?;
        }
        let RoutingSpec {
            scale,
            logit_scale,
            groups,
            used_groups,
            ..
        } = self.routing;
        positive("scale of experts' weights", f64::from(scale))?;
        positive("scale of experts' logits", f64::from(logit_scale))?;
        bounded("number of expert groups", groups, self.count)?;
        bounded(
            "number of expert groups that a token uses",
            used_groups,
            groups.min(MAX_USED_EXPERTS),
        )?;
        let each = self.count / groups;
        let sound = self.count.is_multiple_of(groups)
            && (groups == 1 || each >= 2)
            && self.used <= each * used_groups;
        if sound {
            return Ok(());
        }
        Err(KernelError::model(format!(
            "The model chooses {} of {} experts from {used_groups} of {groups} groups, which is impossible.",
            self.used, self.count
        )))
    }
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

    pub fn has(&self, role: &str) -> bool {
        self.tensors.contains_key(role)
    }
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
    /// How a checkpoint stores quantised matrices; None for ordinary tensors.
    #[serde(default)]
    pub quantization: Option<Scheme>,
}

/// `value` is between 1 and `max`.
fn bounded(name: &str, value: usize, max: usize) -> Result<(), KernelError> {
    if value == 0 || value > max {
        return Err(KernelError::model(format!(
            "The model's {name} is {value}; it must be between 1 and {max}."
        )));
    }
    Ok(())
}

/// `value` is a number above 0.
fn positive(name: &str, value: f64) -> Result<(), KernelError> {
    if !(value.is_finite() && value > 0.0) {
        return Err(KernelError::model(format!(
            "The model's {name} is {value}; it must be a number above 0."
        )));
    }
    Ok(())
}

/// `value` is a number, at least 0.
fn not_negative(name: &str, value: f32) -> Result<(), KernelError> {
    if !(value.is_finite() && value >= 0.0) {
        return Err(KernelError::model(format!(
            "The model's {name} must be a number ≥ 0."
        )));
    }
    Ok(())
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
            if let Some(ffn) = &layer.ffn {
                ffn.validate()?;
            }
            if let Some(mixer) = &layer.mixer {
                mixer.validate()?;
                if self.norm == NormKind::Layer && mixer.heads().is_some() {
                    return Err(KernelError::model(
                        "The model has heads with a state, whose outputs need RMS norms.",
                    ));
                }
            }
            if let Some(attention) = layer.attention() {
                self.validate_attention(index, attention)?;
            }
        }
        Ok(())
    }

    fn validate_attention(
        &self,
        index: usize,
        attention: &AttentionSpec,
    ) -> Result<(), KernelError> {
        bounded("head count", attention.num_heads, 1024)?;
        bounded("KV head count", attention.num_kv_heads, attention.num_heads)?;
        bounded("head dimension", attention.head_dim, MAX_HEAD_DIM)?;
        positive("attention scale", f64::from(attention.scale))?;
        not_negative("attention soft-cap", attention.softcap)?;
        if !attention.num_heads.is_multiple_of(attention.num_kv_heads) {
            return Err(KernelError::model(format!(
                "The model has {} heads, which {} KV heads cannot share evenly.",
                attention.num_heads, attention.num_kv_heads
            )));
        }
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
        if let Some(temperature) = attention.temperature {
            not_negative("query temperature", temperature.beta)?;
            bounded(
                "query temperature's context",
                temperature.original_context,
                MAX_CONTEXT,
            )?;
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

impl TensorRef {
    fn validate(&self) -> Result<(), KernelError> {
        const MAX: usize = 1 << 40;
        let sound = self.start <= MAX
            && self.run <= MAX
            && self.step <= MAX
            && self.parts <= MAX_EXPERTS
            && (self.parts == 0 || self.start == 0 && self.run == 0 && !self.transposed)
            && (self.run == 0 || self.step >= self.run)
            && self.add.is_finite();
        if sound {
            return Ok(());
        }
        Err(KernelError::model(format!(
            "The model takes impossible rows of tensor {}.",
            self.name
        )))
    }

    /// Whether the weight is all of the tensor.
    pub fn is_whole(&self) -> bool {
        self.start == 0 && self.run == 0
    }

    /// Whether the weight's rows follow one another in the tensor.
    pub fn is_contiguous(&self) -> bool {
        !self.transposed && (self.run == 0 || self.step == self.run)
    }

    /// The names of the tensors that are taken together.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let name = |part: usize| match self.parts {
            0 => self.name.clone(),
            _ => self.name.replacen("{}", &part.to_string(), 1),
        };
        (0..self.parts.max(1)).map(name)
    }

    /// The tensor's row that is row `row` of the weight.
    pub fn row(&self, row: usize) -> usize {
        match self.run {
            0 => self.start + row,
            run => self.start + row / run * self.step + row % run,
        }
    }
}

impl RopeSpec {
    fn validate(&self) -> Result<(), KernelError> {
        positive("rotary base", self.theta)?;
        if self.dim == 0 || self.dim > MAX_HEAD_DIM || !self.dim.is_multiple_of(2) {
            return Err(KernelError::model(format!(
                "The model's rotary embedding has {} dimensions; it needs an even number up to {MAX_HEAD_DIM}.",
                self.dim
            )));
        }
        let pairs = self.rotated_pairs();
        if pairs > self.dim / 2 {
            return Err(KernelError::model(format!(
                "The model's rotary embedding rotates {pairs} pairs of {}.",
                self.dim / 2
            )));
        }
        let tables = [
            &self.divisors,
            &self.scaling.short_divisors,
            &self.scaling.long_divisors,
        ];
        let sound = |table: &&Vec<f64>| {
            let positive = table.iter().all(|divisor| *divisor > 0.0);
            positive && (table.is_empty() || table.len() == pairs)
        };
        if !tables.iter().all(sound) {
            return Err(KernelError::model(format!(
                "The model's rotary embedding needs {pairs} divisors above 0."
            )));
        }
        self.scaling.validate()
    }
}

impl RopeScaling {
    fn validate(&self) -> Result<(), KernelError> {
        let positive =
            |name: &str, value: f64| positive(&format!("rotary scaling's {name}"), value);
        if self.kind == RopeScalingKind::None {
            return Ok(());
        }
        positive("factor", self.factor)?;
        if self.kind == RopeScalingKind::Linear {
            return Ok(());
        }
        if self.original_context == 0 {
            return Err(KernelError::model(
                "The model's rotary scaling does not name the context length of its pre-training.",
            ));
        }
        if let Some(factor) = self.attention_factor {
            positive("attention_factor", factor)?;
        }
        match self.kind {
            RopeScalingKind::Llama3 => {
                positive("low_freq_factor", self.low_freq_factor)?;
                positive("high_freq_factor", self.high_freq_factor)?;
                if self.low_freq_factor >= self.high_freq_factor {
                    return Err(KernelError::model(
                        "The model's rotary scaling needs low_freq_factor below high_freq_factor.",
                    ));
                }
            }
            RopeScalingKind::Yarn => {
                positive("beta_fast", self.beta_fast)?;
                positive("beta_slow", self.beta_slow)?;
            }
            RopeScalingKind::Longrope => {
                if self.short_divisors.is_empty() || self.long_divisors.is_empty() {
                    return Err(KernelError::model(
                        "The model's rotary scaling of kind longrope has no divisors.",
                    ));
                }
            }
            RopeScalingKind::None | RopeScalingKind::Linear => {}
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A reference to a whole tensor.
    pub(crate) fn whole(name: &str) -> Value {
        json!({ "name": name, "start": 0, "run": 0, "step": 0, "transposed": false, "add": 0.0, "parts": 0 })
    }

    pub(crate) fn tiny_rope() -> Value {
        json!({
            "theta": 10000.0, "dim": 16, "style": "half", "pairs": null, "divisors": [],
            "scaling": {
                "kind": "none", "factor": 1.0, "original_context": 0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": true,
                "attention_factor": null, "short_divisors": [], "long_divisors": [] },
        })
    }

    /// A layer of a GGUF file of a llama.
    fn tiny_layer(index: usize) -> Value {
        let roles = [
            ("mixer_norm", "attn_norm"),
            ("q", "attn_q"),
            ("k", "attn_k"),
            ("v", "attn_v"),
            ("o", "attn_output"),
            ("ffn_norm", "ffn_norm"),
            ("gate", "ffn_gate"),
            ("up", "ffn_up"),
            ("down", "ffn_down"),
        ];
        let tensors: serde_json::Map<String, Value> = roles
            .into_iter()
            .map(|(role, name)| (role.into(), whole(&format!("blk.{index}.{name}.weight"))))
            .collect();
        json!({
            "mixer": {
                "kind": "attention", "num_heads": 4, "num_kv_heads": 2, "head_dim": 16,
                "scale": 0.25, "rope": 0, "window": 0, "qk_norm_whole": false, "value_norm": false,
                "softcap": 0.0, "kv_layer": null, "temperature": null },
            "ffn": { "kind": "mlp", "intermediate_size": 96, "activation": "silu" },
            "tensors": tensors,
        })
    }

    pub(crate) fn tiny_json() -> Value {
        json!({
            "architecture": "llama", "hidden_size": 64, "vocab_size": 128, "context_length": 256,
            "norm": "rms", "norm_eps": 1e-5, "embedding_multiplier": 1.0,
            "residual_multiplier": 1.0, "logit_multiplier": 1.0, "logit_softcap": 0.0,
            "per_layer_width": 0, "ropes": [tiny_rope()],
            "layers": [tiny_layer(0), tiny_layer(1)],
            "tensors": {
                "embedding": whole("token_embd.weight"), "final_norm": whole("output_norm.weight") },
        })
    }

    fn rejection(change: impl FnOnce(&mut Value)) -> String {
        let mut value = tiny_json();
        change(&mut value);
        ModelSpec::from_json(&value.to_string())
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn a_valid_spec_is_read() {
        let spec = ModelSpec::from_json(&tiny_json().to_string()).unwrap();
        assert_eq!(spec.attentions().count(), 2);
        assert_eq!(spec.layers[1].attention().unwrap().group_size(), 2);
        assert_eq!(spec.ropes[0].rotated_pairs(), 8);
        assert!(spec.tied_embeddings());
    }

    #[test]
    fn invalid_specs_are_rejected_with_a_sentence() {
        assert!(rejection(|v| v["hidden_size"] = 0.into()).contains("hidden size is 0"));
        let mixer = |name: &'static str, value: Value| {
            rejection(move |v| v["layers"][1]["mixer"][name] = value)
        };
        assert!(mixer("num_kv_heads", 3.into()).contains("share evenly"));
        assert!(mixer("head_dim", 513.into()).contains("head dimension"));
        assert!(mixer("head_dim", 8.into()).contains("pairs 16"));
        assert!(mixer("rope", 1.into()).contains("names rotary embedding 1"));
        assert!(mixer("kind", "telepathy".into()).contains("not readable"));
        assert!(mixer("scale", 0.0.into()).contains("attention scale"));
        assert!(mixer("kv_layer", 1.into()).contains("no such keys"));
        assert!(rejection(|v| v["ropes"][0]["dim"] = 15.into()).contains("even"));
        assert!(rejection(|v| v["ropes"][0]["pairs"] = 9.into()).contains("rotates 9"));
        assert!(rejection(|v| v["ropes"][0]["divisors"] = json!([1.0])).contains("8 divisors"));
        assert!(rejection(|v| v["surprise"] = 1.into()).contains("surprise"));
        assert!(
            rejection(|v| v["ropes"][0]["scaling"]["kind"] = "yarn".into())
                .contains("pre-training")
        );
        assert!(rejection(|v| v["vocab_size"] = (1u64 << 40).into()).contains("vocabulary"));
        assert!(rejection(|v| v["ropes"][0]["theta"] = (-1.0).into()).contains("rotary base"));
        assert!(
            rejection(|v| v["layers"][0]["tensors"]["q"]["start"] = (1u64 << 50).into())
                .contains("impossible rows")
        );
    }

    /// Experts of a tiny layer.
    pub(crate) fn tiny_experts() -> Value {
        json!({
            "kind": "experts", "count": 8, "used": 2, "intermediate_size": 32, "activation": "silu",
            "routing": {
                "scores": "softmax", "renormalise": true, "scale": 1.0, "logit_scale": 1.0, "groups": 1,
                "used_groups": 1 },
            "shared": { "kind": "mlp", "intermediate_size": 64, "activation": "silu" },
        })
    }

    #[test]
    fn experts_are_read() {
        let mut value = tiny_json();
        value["layers"][1]["ffn"] = tiny_experts();
        let spec = ModelSpec::from_json(&value.to_string()).unwrap();
        let Some(FeedForwardSpec::Experts(experts)) = &spec.layers[1].ffn else {
            panic!("no experts");
        };
        assert_eq!((experts.count, experts.used), (8, 2));
        assert_eq!(experts.shared.as_ref().unwrap().intermediate_size, 64);
    }

    #[test]
    fn impossible_experts_are_rejected_with_a_sentence() {
        let experts = |change: fn(&mut Value)| {
            rejection(move |v| {
                v["layers"][1]["ffn"] = tiny_experts();
                change(&mut v["layers"][1]["ffn"]);
            })
        };
        assert!(experts(|v| v["count"] = 0.into()).contains("expert count is 0"));
        assert!(experts(|v| v["used"] = 9.into()).contains("uses is 9"));
        assert!(experts(|v| v["used"] = 0.into()).contains("uses is 0"));
        assert!(experts(|v| v["intermediate_size"] = 0.into()).contains("experts' intermediate"));
        assert!(experts(|v| v["routing"]["scale"] = 0.0.into()).contains("experts' weights"));
        assert!(experts(|v| v["routing"]["logit_scale"] = 0.0.into()).contains("experts' logits"));
        assert!(experts(|v| v["routing"]["groups"] = 3.into()).contains("impossible"));
        assert!(experts(|v| v["routing"]["groups"] = 8.into()).contains("impossible"));
        assert!(experts(|v| v["routing"]["used_groups"] = 2.into()).contains("groups that"));
        assert!(
            experts(|v| {
                v["count"] = 200.into();
                v["routing"]["groups"] = 100.into();
                v["routing"]["used_groups"] = 65.into();
            })
            .contains("uses is 65; it must be between 1 and 64")
        );
        assert!(experts(|v| v["routing"]["scores"] = "dice".into()).contains("not readable"));
        assert!(experts(|v| v["shared"] = tiny_experts()).contains("the shared network is an mlp"));
        assert!(
            experts(|v| v["shared"]["intermediate_size"] = 0.into()).contains("intermediate size")
        );
        assert!(
            rejection(|v| {
                let tensor = &mut v["layers"][0]["tensors"]["q"];
                (tensor["parts"], tensor["start"]) = (2.into(), 1.into());
            })
            .contains("impossible rows")
        );
    }

    fn with_mixer(mixer: Value) -> Value {
        let mut value = tiny_json();
        value["layers"][0]["mixer"] = mixer;
        value
    }

    fn delta_net() -> Value {
        json!({
            "kind": "gated_delta_net", "kernel": 4, "num_heads": 4, "num_key_heads": 2,
            "key_dim": 8, "value_dim": 24, "tiled": true })
    }

    #[test]
    fn recurrent_mixers_have_states() {
        let state = |mixer: Value| {
            let spec = ModelSpec::from_json(&with_mixer(mixer).to_string()).unwrap();
            spec.layers[0].state(spec.hidden_size)
        };
        let conv = state(json!({ "kind": "short_conv", "kernel": 3 }));
        assert_eq!(
            conv,
            LayerState {
                conv: 2 * 64,
                heads: 0
            }
        );
        // 2 * 2 * 8 + 4 * 24 channels; values are padded to 32.
        let delta = state(delta_net());
        assert_eq!(
            delta,
            LayerState {
                conv: 3 * 128,
                heads: 4 * 8 * 32
            }
        );
        let mamba = state(json!({
            "kind": "mamba2", "kernel": 4, "num_heads": 6, "num_groups": 1, "head_dim": 16,
            "state_dim": 12 }));
        assert_eq!(
            mamba,
            LayerState {
                conv: 3 * 128,
                heads: 6 * 12 * 16
            }
        );
    }

    #[test]
    fn invalid_recurrent_mixers_are_rejected_with_a_sentence() {
        let refused = |field: &'static str, number: usize| {
            rejection(move |v| {
                *v = with_mixer(delta_net());
                v["layers"][0]["mixer"][field] = number.into();
            })
        };
        assert!(
            rejection(|v| {
                *v = with_mixer(delta_net());
                v["norm"] = "layer".into();
            })
            .contains("RMS norms")
        );
        let without_attention = |v: &mut Value| {
            for layer in v["layers"].as_array_mut().expect("layers") {
                layer["mixer"] = json!({ "kind": "short_conv", "kernel": 3 });
            }
        };
        assert!(rejection(without_attention).contains("no layer with attention"));
        assert!(refused("kernel", 9).contains("convolution's kernel is 9"));
        assert!(refused("num_heads", 0).contains("head count is 0"));
        assert!(refused("num_key_heads", 3).contains("share evenly"));
        assert!(refused("num_key_heads", 8).contains("heads with keys"));
        assert!(refused("key_dim", 513).contains("key dimension"));
        assert!(refused("value_dim", 0).contains("value dimension"));
        assert!(
            rejection(|v| *v = with_mixer(json!({ "kind": "short_conv", "kernel": 0 })))
                .contains("kernel is 0")
        );
    }

    #[test]
    fn rows_of_a_weight_are_taken_in_runs() {
        let mut tensor: TensorRef = serde_json::from_value(whole("x")).unwrap();
        tensor.start = 3;
        assert_eq!(tensor.row(5), 8);
        (tensor.run, tensor.step) = (2, 5);
        let rows: Vec<usize> = (0..5).map(|row| tensor.row(row)).collect();
        assert_eq!(rows, [3, 4, 8, 9, 13]);
    }
}
