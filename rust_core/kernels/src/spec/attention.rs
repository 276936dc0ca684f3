//! Softmax attention.

use serde::Deserialize;

use super::checks::{bounded, not_negative, positive};
use super::{MAX_CONTEXT, MAX_HEAD_DIM, MAX_HEADS};
use crate::error::KernelError;

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

    pub(super) fn validate(&self) -> Result<(), KernelError> {
        bounded("head count", self.num_heads, MAX_HEADS)?;
        bounded("KV head count", self.num_kv_heads, self.num_heads)?;
        bounded("head dimension", self.head_dim, MAX_HEAD_DIM)?;
        positive("attention scale", f64::from(self.scale))?;
        not_negative("attention soft-cap", self.softcap)?;
        if !self.num_heads.is_multiple_of(self.num_kv_heads) {
            return Err(KernelError::model(format!(
                "The model has {} heads, which {} KV heads cannot share evenly.",
                self.num_heads, self.num_kv_heads
            )));
        }
        if let Some(temperature) = self.temperature {
            not_negative("query temperature", temperature.beta)?;
            bounded(
                "query temperature's context",
                temperature.original_context,
                MAX_CONTEXT,
            )?;
        }
        Ok(())
    }
}
