//! Where a model's weights are stored.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::feed_forward::MAX_EXPERTS;
use crate::error::KernelError;

/// Where a weight is stored: row `j` of it is row `start + j / run * step + j % run` of the tensor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorRef {
    pub name: String,
    pub start: usize,
    /// Rows taken together; 0 for all.
    pub run: usize,
    pub step: usize,
    /// Stored as `[inputs, outputs]`; floats only.
    pub transposed: bool,
    /// Added to each element; vectors only.
    pub add: f32,
    /// Tensors that are taken together, row after row, `name` having `{}` for their index; 0 for a single one.
    pub parts: usize,
}

/// Role of a weight to where it is stored; `engine/models/spec.py` lists the roles.
pub type Tensors = BTreeMap<String, TensorRef>;

impl TensorRef {
    pub(super) fn validate(&self) -> Result<(), KernelError> {
        const MAX: usize = 1 << 40;
        let sound = self.start <= MAX
            && self.run <= MAX
            && self.step <= MAX
            && self.parts <= MAX_EXPERTS
            && (self.parts == 0 || self.start == 0 && self.run == 0 && !self.transposed)
            && (self.run == 0 || self.step >= self.run)
            && self.add.is_finite();
        if sound {
            return Ok(());
        }
        Err(KernelError::model(format!(
            "The model takes impossible rows of tensor {}.",
            self.name
        )))
    }

    /// Whether the weight is all of the tensor.
    pub fn is_whole(&self) -> bool {
        self.start == 0 && self.run == 0
    }

    /// Whether the weight's rows follow one another in the tensor.
    pub fn is_contiguous(&self) -> bool {
        !self.transposed && (self.run == 0 || self.step == self.run)
    }

    /// The names of the tensors that are taken together.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let name = |part: usize| match self.parts {
            0 => self.name.clone(),
            _ => self.name.replacen("{}", &part.to_string(), 1),
        };
        (0..self.parts.max(1)).map(name)
    }

    /// The tensor's row that is row `row` of the weight.
    pub fn row(&self, row: usize) -> usize {
        match self.run {
            0 => self.start + row,
            run => self.start + row / run * self.step + row % run,
        }
    }
}
