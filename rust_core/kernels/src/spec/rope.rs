//! Rotary position embeddings.

use serde::Deserialize;

use super::MAX_HEAD_DIM;
use super::checks::positive;
use crate::error::KernelError;

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

impl RopeSpec {
    pub(super) fn validate(&self) -> Result<(), KernelError> {
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
