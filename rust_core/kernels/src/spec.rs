//! Shapes and constants of a decoder-only transformer; mirrors `engine/models/spec.py`.
//!
//! The JSON is produced by Python from an untrusted model file, and memory is sized by it. [`ModelSpec::from_json`] therefore
//! validates every field again and rejects an invalid one with one sentence.

use serde::Deserialize;

use crate::error::KernelError;
use crate::format::Scheme;

/// Largest accepted width. The product of any two widths fits `usize`.
const MAX_WIDTH: usize = 1 << 20;
const MAX_LAYERS: usize = 4096;
const MAX_VOCAB: usize = 1 << 24;
const MAX_CONTEXT: usize = 1 << 28;

/// Model family. Families differ in defaults only; the arithmetic is determined by the flags of [`ModelSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    Llama,
    Mistral,
    Qwen2,
    Qwen3,
}

/// Which elements of a head form a rotary pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RopeStyle {
    /// Pairs `(i, i + d/2)`: Hugging Face checkpoints and qwen GGUF files.
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
    pub attention_factor: Option<f64>,
}

/// Same fields as `ModelSpec` in `engine/models/spec.py`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    pub architecture: Architecture,
    pub num_layers: usize,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_heads: usize,
    pub num_kv_heads: usize,
    pub head_dim: usize,
    pub vocab_size: usize,
    pub context_length: usize,
    pub rms_norm_eps: f32,
    pub rope_theta: f64,
    pub rope_style: RopeStyle,
    pub rope_scaling: RopeScaling,
    pub tied_embeddings: bool,
    pub qkv_bias: bool,
    pub output_bias: bool,
    pub mlp_bias: bool,
    pub qk_norm: bool,
    /// One entry per layer: 0 for full attention, n for the last n tokens including the current one.
    pub sliding_windows: Vec<usize>,
    /// How quantised matrices of a checkpoint are stored; none if they are ordinary tensors.
    #[serde(default)]
    pub quantization: Option<Scheme>,
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
        let bounded = |name: &str, value: usize, max: usize| {
            if value == 0 || value > max {
                return Err(KernelError::model(format!(
                    "The model's {name} is {value}; it must be between 1 and {max}."
                )));
            }
            Ok(())
        };
        bounded("layer count", self.num_layers, MAX_LAYERS)?;
        bounded("hidden size", self.hidden_size, MAX_WIDTH)?;
        bounded("intermediate size", self.intermediate_size, MAX_WIDTH)?;
        bounded("head count", self.num_heads, 1024)?;
        bounded("KV head count", self.num_kv_heads, self.num_heads)?;
        bounded("head dimension", self.head_dim, MAX_HEAD_DIM)?;
        bounded("vocabulary size", self.vocab_size, MAX_VOCAB)?;
        bounded("context length", self.context_length, MAX_CONTEXT)?;
        if !self.num_heads.is_multiple_of(self.num_kv_heads) {
            return Err(KernelError::model(format!(
                "The model has {} heads, which {} KV heads cannot share evenly.",
                self.num_heads, self.num_kv_heads
            )));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(KernelError::model(format!(
                "The model's head dimension is {}; rotary positions need an even one.",
                self.head_dim
            )));
        }
        if !(self.rms_norm_eps.is_finite() && self.rms_norm_eps >= 0.0) {
            return Err(KernelError::model(
                "The model's RMS norm epsilon must be a number ≥ 0.",
            ));
        }
        if !(self.rope_theta.is_finite() && self.rope_theta > 0.0) {
            return Err(KernelError::model(
                "The model's rotary base must be a number above 0.",
            ));
        }
        if self.sliding_windows.len() != self.num_layers {
            return Err(KernelError::model(format!(
                "The model names {} sliding windows for {} layers.",
                self.sliding_windows.len(),
                self.num_layers
            )));
        }
        self.rope_scaling.validate()
    }

    /// Query heads that share one KV head.
    pub fn group_size(&self) -> usize {
        self.num_heads / self.num_kv_heads
    }
}

/// Largest head dimension supported by the stack buffers of the attention kernels.
pub const MAX_HEAD_DIM: usize = 256;

impl RopeScaling {
    fn validate(&self) -> Result<(), KernelError> {
        let positive = |name: &str, value: f64| {
            if !(value.is_finite() && value > 0.0) {
                return Err(KernelError::model(format!(
                    "The model's rotary scaling has {name} {value}; it must be a number above 0."
                )));
            }
            Ok(())
        };
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
        if self.kind == RopeScalingKind::Llama3 {
            positive("low_freq_factor", self.low_freq_factor)?;
            positive("high_freq_factor", self.high_freq_factor)?;
            if self.low_freq_factor >= self.high_freq_factor {
                return Err(KernelError::model(
                    "The model's rotary scaling needs low_freq_factor below high_freq_factor.",
                ));
            }
        } else {
            positive("beta_fast", self.beta_fast)?;
            positive("beta_slow", self.beta_slow)?;
            if let Some(factor) = self.attention_factor {
                positive("attention_factor", factor)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn tiny_json() -> serde_json::Value {
        serde_json::json!({
            "architecture": "llama", "num_layers": 2, "hidden_size": 64, "intermediate_size": 96,
            "num_heads": 4, "num_kv_heads": 2, "head_dim": 16, "vocab_size": 128,
            "context_length": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
            "rope_style": "half", "rope_scaling": {
                "kind": "none", "factor": 1.0, "original_context": 0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
                "attention_factor": null },
            "tied_embeddings": true, "qkv_bias": false, "output_bias": false, "mlp_bias": false,
            "qk_norm": false, "sliding_windows": [0, 0],
        })
    }

    fn rejection(change: impl FnOnce(&mut serde_json::Value)) -> String {
        let mut value = tiny_json();
        change(&mut value);
        ModelSpec::from_json(&value.to_string())
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn a_valid_spec_is_read() {
        let spec = ModelSpec::from_json(&tiny_json().to_string()).unwrap();
        assert_eq!(spec.group_size(), 2);
        assert_eq!(spec.rope_style, RopeStyle::Half);
    }

    #[test]
    fn invalid_specs_are_rejected_with_a_sentence() {
        assert!(rejection(|v| v["hidden_size"] = 0.into()).contains("hidden size is 0"));
        assert!(rejection(|v| v["num_kv_heads"] = 3.into()).contains("share evenly"));
        assert!(rejection(|v| v["head_dim"] = 15.into()).contains("even"));
        assert!(rejection(|v| v["sliding_windows"] = serde_json::json!([0])).contains("sliding"));
        assert!(rejection(|v| v["architecture"] = "mamba".into()).contains("not readable"));
        assert!(rejection(|v| v["surprise"] = 1.into()).contains("surprise"));
        assert!(rejection(|v| v["rope_scaling"]["kind"] = "yarn".into()).contains("pre-training"));
        assert!(rejection(|v| v["vocab_size"] = (1u64 << 40).into()).contains("vocabulary"));
        assert!(rejection(|v| v["rope_theta"] = (-1.0).into()).contains("rotary base"));
    }
}
