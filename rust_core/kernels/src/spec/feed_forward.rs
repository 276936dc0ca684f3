//! Feed-forward networks, and experts.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::MAX_WIDTH;
use super::checks::{bounded, positive};
use crate::error::KernelError;

pub(super) const MAX_EXPERTS: usize = 1 << 16;

/// Most experts that a token uses, and most groups from which they are chosen.
pub const MAX_USED_EXPERTS: usize = 64;

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

impl Activation {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Silu,
        Self::GeluTanh,
        Self::Gelu,
        Self::Relu2,
        Self::SwigluClamped,
    ];

    /// Index in [`Self::ALL`], for const parameters.
    pub const fn index(self) -> usize {
        let mut index = 0;
        while Self::ALL[index] as usize != self as usize {
            index += 1;
        }
        index
    }
}

/// A feed-forward network; gated if the layer has a `gate`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpSpec {
    pub intermediate_size: usize,
    pub activation: Activation,
    /// Gates of a token are cut where they are not so many standard deviations above their mean.
    #[serde(default)]
    pub cutoff: Option<f32>,
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
    /// Whether it is experts beside a network that every token uses.
    pub(super) fn has_shared_network(&self) -> bool {
        matches!(self, Self::Experts(experts) if experts.shared.is_some())
    }

    pub(super) fn validate(&self) -> Result<(), KernelError> {
        match self {
            Self::Mlp(mlp) => mlp.validate(),
            Self::Experts(experts) => experts.validate(),
        }
    }
}

impl MlpSpec {
    fn validate(&self) -> Result<(), KernelError> {
        bounded("intermediate size", self.intermediate_size, MAX_WIDTH)?;
        if self.cutoff.is_some_and(|cutoff| !cutoff.is_finite()) {
            return Err(KernelError::model("The model cuts its gates at no number."));
        }
        Ok(())
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
            if shared.cutoff.is_some() {
                return Err(KernelError::model(
                    "The model cuts the gates of a network beside experts, which is not supported.",
                ));
            }
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
