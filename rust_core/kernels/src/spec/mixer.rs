//! Mixers: how the tokens of a sequence exchange information.

use serde::Deserialize;

use super::attention::AttentionSpec;
use super::checks::bounded;
use super::{MAX_HEAD_DIM, MAX_HEADS, MAX_WIDTH};
use crate::error::KernelError;
use crate::pack::PANEL_COLUMNS;
use crate::recurrent::conv::MAX_KERNEL;
use crate::recurrent::head::Heads;
use crate::recurrent::scan::HeadShape;
use crate::recurrent::states::LayerState;

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

    pub(super) fn validate(&self) -> Result<(), KernelError> {
        if let Self::Attention(attention) = self {
            return attention.validate();
        }
        bounded("convolution's kernel", self.kernel(), MAX_KERNEL)?;
        let Some(heads) = self.heads() else {
            return Ok(());
        };
        bounded("head count", heads.count, MAX_HEADS)?;
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
