//! Weights of the recurrent mixers.

use super::plan::{Needed, Plan};
use super::{Linear, Norm, missing};
use crate::error::KernelError;
use crate::pack::PackedMatrix;
use crate::quantize::Role;
use crate::recurrent::conv::ConvWeights;
use crate::recurrent::head::{HeadWeights, Heads};
use crate::spec::{LayerSpec, MixerSpec};

/// Weights of a gated short convolution.
#[derive(Debug)]
pub struct ShortConvWeights {
    pub input: Linear,
    /// What the convolution's inputs are multiplied with.
    pub before: Linear,
    /// What its outputs are multiplied with.
    pub after: Linear,
    pub conv: ConvWeights,
    pub o: Linear,
}

/// Weights of gated DeltaNet or Mamba2.
#[derive(Debug)]
pub struct StateHeadsWeights {
    pub heads: Heads,
    /// Inputs of the convolution.
    pub input: Linear,
    pub conv: ConvWeights,
    /// Output gate.
    pub z: Linear,
    /// Gated DeltaNet only.
    pub strength: Option<Linear>,
    pub time_step: Linear,
    pub of_heads: HeadWeights,
    /// Norm of the gated outputs, over the heads of each key (Mamba2).
    pub output_norm: Option<Norm>,
    pub o: Linear,
}

impl StateHeadsWeights {
    /// The norm of the outputs, if it is over some of the heads each.
    pub fn norm_by_key(&self) -> Option<&Norm> {
        let several = self.heads.key_count > 1;
        self.output_norm.as_ref().filter(|_| several)
    }

    /// The norm of the outputs, if it is over all heads.
    pub fn norm_of_all(&self) -> Option<&Norm> {
        let single = self.heads.key_count == 1;
        self.output_norm.as_ref().filter(|_| single)
    }
}

/// The matrices of a recurrent mixer, in the order in which a step reads them; none for other mixers.
pub(super) fn needed(mixer: &MixerSpec, hidden: usize) -> Vec<Needed> {
    let whole = |role, outputs| Needed::whole(role, Role::Other, outputs, hidden);
    let Some(heads) = mixer.heads() else {
        return match mixer {
            MixerSpec::ShortConv(_) => vec![
                whole("conv_in", hidden),
                whole("conv_before", hidden),
                whole("conv_after", hidden),
                whole("o", hidden),
            ],
            _ => Vec::new(),
        };
    };
    let mut needed = vec![
        whole("conv_in", heads.channels()),
        whole("z", heads.outputs()),
    ];
    let sensitive = |role| Needed::whole(role, Role::Sensitive, heads.count, hidden);
    if heads.shape.delta {
        needed.push(sensitive("beta"));
    }
    needed.push(sensitive("time_step"));
    needed.push(Needed::whole("o", Role::Other, hidden, heads.outputs()));
    needed
}

impl Plan<'_> {
    /// Weights of a gated short convolution over `hidden` channels.
    pub(super) fn short_conv(
        &mut self,
        (layer, index): (&LayerSpec, usize),
        matrices: &[PackedMatrix],
        kernel: usize,
        hidden: usize,
    ) -> Result<ShortConvWeights, KernelError> {
        Ok(ShortConvWeights {
            input: self.needed_linear(layer, index, "conv_in", matrices)?,
            before: self.needed_linear(layer, index, "conv_before", matrices)?,
            after: self.needed_linear(layer, index, "conv_after", matrices)?,
            conv: self.conv(layer, kernel, hidden)?,
            o: self.needed_linear(layer, index, "o", matrices)?,
        })
    }

    /// Weights of gated DeltaNet or Mamba2.
    pub(super) fn state_heads(
        &mut self,
        (layer, index): (&LayerSpec, usize),
        matrices: &[PackedMatrix],
        heads: Heads,
        kernel: usize,
        norm_eps: f32,
    ) -> Result<StateHeadsWeights, KernelError> {
        let (tensors, count) = (&layer.tensors, heads.count);
        let rates = match self.vector(tensors, "rate", count)? {
            Some(rates) => rates,
            None => {
                let logs = self.vector(tensors, "rate_log", count)?;
                let logs = logs.ok_or_else(|| missing("rate_log"))?;
                logs.into_iter().map(|log| -log.exp()).collect()
            }
        };
        let normed = if heads.shape.delta {
            heads.shape.value_dim
        } else {
            heads.outputs()
        };
        let norm = self.vector(tensors, "state_norm", normed)?;
        let norm = norm.ok_or_else(|| missing("state_norm"))?;
        let (head_norm, output_norm) = if heads.shape.delta {
            (norm, None)
        } else {
            let norm = Norm {
                weight: norm,
                bias: Vec::new(),
            };
            (Vec::new(), Some(norm))
        };
        let skip = self.vector(tensors, "skip", count)?;
        let strength = match heads.shape.delta {
            true => Some(self.needed_linear(layer, index, "beta", matrices)?),
            false => None,
        };
        Ok(StateHeadsWeights {
            heads,
            input: self.needed_linear(layer, index, "conv_in", matrices)?,
            conv: self.conv(layer, kernel, heads.channels())?,
            z: self.needed_linear(layer, index, "z", matrices)?,
            strength,
            time_step: self.needed_linear(layer, index, "time_step", matrices)?,
            of_heads: HeadWeights {
                rates,
                skip: skip.unwrap_or_default(),
                norm: head_norm,
                norm_eps,
            },
            output_norm,
            o: self.needed_linear(layer, index, "o", matrices)?,
        })
    }

    fn conv(
        &mut self,
        layer: &LayerSpec,
        kernel: usize,
        channels: usize,
    ) -> Result<ConvWeights, KernelError> {
        let weights = self.vector(&layer.tensors, "conv", channels * kernel)?;
        let weights = weights.ok_or_else(|| missing("conv"))?;
        let bias = self.vector(&layer.tensors, "conv.bias", channels)?;
        Ok(ConvWeights::new(kernel, &weights, bias.as_deref()))
    }
}
