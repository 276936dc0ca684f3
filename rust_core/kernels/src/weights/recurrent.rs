//! Weights of the recurrent mixers.

use super::layer::LayerTensors;
use super::plan::{Needed, Plan};
use super::{Linear, missing};
use crate::error::KernelError;
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
    /// Norm of the gated outputs (Mamba2), over the heads of a key each; empty for none.
    pub output_norm: Vec<f32>,
    pub o: Linear,
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
        layer: LayerTensors<'_>,
        kernel: usize,
        hidden: usize,
    ) -> Result<ShortConvWeights, KernelError> {
        Ok(ShortConvWeights {
            input: self.needed_linear(layer, "conv_in")?,
            before: self.needed_linear(layer, "conv_before")?,
            after: self.needed_linear(layer, "conv_after")?,
            conv: self.conv(layer.spec, kernel, hidden)?,
            o: self.needed_linear(layer, "o")?,
        })
    }

    /// Weights of gated DeltaNet or Mamba2.
    pub(super) fn state_heads(
        &mut self,
        layer: LayerTensors<'_>,
        heads: Heads,
        kernel: usize,
        norm_eps: f32,
    ) -> Result<StateHeadsWeights, KernelError> {
        let (tensors, count) = (&layer.spec.tensors, heads.count);
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
            (norm, Vec::new())
        } else {
            (Vec::new(), norm)
        };
        let skip = self.vector(tensors, "skip", count)?;
        let strength = match heads.shape.delta {
            true => Some(self.needed_linear(layer, "beta")?),
            false => None,
        };
        Ok(StateHeadsWeights {
            heads,
            input: self.needed_linear(layer, "conv_in")?,
            conv: self.conv(layer.spec, kernel, heads.channels())?,
            z: self.needed_linear(layer, "z")?,
            strength,
            time_step: self.needed_linear(layer, "time_step")?,
            of_heads: HeadWeights {
                rates,
                skip: skip.unwrap_or_default(),
                norm: head_norm,
                norm_eps,
            },
            output_norm,
            o: self.needed_linear(layer, "o")?,
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
