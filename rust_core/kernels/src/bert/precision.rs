//! How an encoder multiplies.

use super::BertSpec;
use super::int8::{MAX_INPUTS, MULTIPLE};
use crate::error::KernelError;

/// Element type of the encoder's matrix products and attention scores. Everything else is computed in f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// f32, from the file's weights.
    F32,
    /// Bytes: weights with a scale for each output, activations with a scale for each token.
    Int8,
}

impl Precision {
    /// # Errors
    /// There is no precision of this name.
    pub fn parse(name: &str) -> Result<Self, KernelError> {
        match name {
            "f32" => Ok(Self::F32),
            "int8" => Ok(Self::Int8),
            _ => Err(KernelError::config(format!(
                "There is no precision {name:?}: choose f32 or int8."
            ))),
        }
    }

    /// # Errors
    /// The encoder's matrices cannot be multiplied in this precision.
    pub(super) fn check(self, spec: &BertSpec) -> Result<(), KernelError> {
        let widths = [spec.hidden_size, spec.intermediate_size];
        if self == Self::Int8
            && !widths
                .iter()
                .all(|width| width.is_multiple_of(MULTIPLE) && *width <= MAX_INPUTS)
        {
            return Err(KernelError::config(format!(
                "An encoder of width {} with {} in between cannot run in int8: both must be multiples of {MULTIPLE} and at most {MAX_INPUTS}.",
                widths[0], widths[1]
            )));
        }
        Ok(())
    }
}
