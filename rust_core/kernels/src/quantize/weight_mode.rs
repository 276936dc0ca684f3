//! Which type each matrix of a model is packed as.

use crate::error::KernelError;
use crate::pack::layout::GROUP;
use crate::quant::DType;

/// Inputs of a block of K-quants.
const BLOCK: usize = 256;

/// How float matrices are packed. Quantised ones always stay as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightMode {
    /// As stored.
    #[default]
    Stored,
    /// 8 bits.
    Q8,
    /// 4 bits; more for the matrices that accuracy depends on most.
    Q4,
}

/// What a matrix does in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The embedding or the LM head.
    Vocabulary,
    /// Values of the attention, or the output of the feed-forward network.
    Sensitive,
    /// The router of experts: small, and a rounded logit may choose another expert.
    Router,
    /// Any other matrix of a layer.
    Other,
}

impl WeightMode {
    /// The mode called `name`.
    pub fn parse(name: &str) -> Result<Self, KernelError> {
        match name {
            "stored" => Ok(Self::Stored),
            "q8" => Ok(Self::Q8),
            "q4" => Ok(Self::Q4),
            _ => Err(KernelError::config(format!(
                "There is no weight mode {name:?}: choose stored, q8 or q4."
            ))),
        }
    }

    /// The type as which a matrix of type `stored` is packed.
    ///
    /// Rows of whole blocks of 256 become K-quants, others blocks of 32. Rows of no whole blocks, and routers, stay as stored.
    pub fn target(self, stored: DType, role: Role, inputs: usize) -> DType {
        if stored.is_quantized() || !inputs.is_multiple_of(GROUP) || role == Role::Router {
            return stored;
        }
        let whole = inputs.is_multiple_of(BLOCK);
        match (self, role) {
            (Self::Stored, _) => stored,
            (Self::Q8, _) => DType::Q8_0,
            (Self::Q4, Role::Vocabulary | Role::Sensitive) if whole => DType::Q6K,
            (Self::Q4, Role::Vocabulary | Role::Sensitive) => DType::Q8_0,
            (Self::Q4, Role::Other | Role::Router) if whole => DType::Q4K,
            (Self::Q4, Role::Other | Role::Router) => DType::Q4_1,
        }
    }
}
