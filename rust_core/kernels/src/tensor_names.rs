//! Tensor naming schemes of GGUF files and Hugging Face checkpoints.

use crate::format::TensorSource;

/// A naming scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamingScheme {
    /// `blk.N.attn_q.weight`
    Gguf,
    /// `model.layers.N.self_attn.q_proj.weight`
    HuggingFace,
}

impl NamingScheme {
    /// The scheme used by `source`.
    pub fn detect(source: &dyn TensorSource) -> Self {
        if source.contains(&Self::Gguf.embedding()) {
            Self::Gguf
        } else {
            Self::HuggingFace
        }
    }

    pub fn embedding(self) -> String {
        self.pick("token_embd.weight", "model.embed_tokens.weight")
    }

    pub fn lm_head(self) -> String {
        self.pick("output.weight", "lm_head.weight")
    }

    pub fn final_norm(self) -> String {
        self.pick("output_norm.weight", "model.norm.weight")
    }

    /// Divisors of the rotary frequencies. Hugging Face checkpoints have them as configuration, not as a tensor.
    pub fn rope_factors(self) -> Option<&'static str> {
        (self == Self::Gguf).then_some("rope_freqs.weight")
    }

    /// Name of a layer's tensor: `part` is a field name of `LayerWeights`, `kind` is `weight` or `bias`.
    pub fn layer(self, layer: usize, part: &str, kind: &str) -> String {
        let (gguf, hugging_face) = match part {
            "attention_norm" => ("attn_norm", "input_layernorm"),
            "q" => ("attn_q", "self_attn.q_proj"),
            "k" => ("attn_k", "self_attn.k_proj"),
            "v" => ("attn_v", "self_attn.v_proj"),
            "o" => ("attn_output", "self_attn.o_proj"),
            "q_norm" => ("attn_q_norm", "self_attn.q_norm"),
            "k_norm" => ("attn_k_norm", "self_attn.k_norm"),
            "mlp_norm" => ("ffn_norm", "post_attention_layernorm"),
            "gate" => ("ffn_gate", "mlp.gate_proj"),
            "up" => ("ffn_up", "mlp.up_proj"),
            "down" => ("ffn_down", "mlp.down_proj"),
            _ => unreachable!("no layer has a part {part}"),
        };
        match self {
            Self::Gguf => format!("blk.{layer}.{gguf}.{kind}"),
            Self::HuggingFace => format!("model.layers.{layer}.{hugging_face}.{kind}"),
        }
    }

    fn pick(self, gguf: &str, hugging_face: &str) -> String {
        match self {
            Self::Gguf => gguf.to_owned(),
            Self::HuggingFace => hugging_face.to_owned(),
        }
    }
}
