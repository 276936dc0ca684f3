//! Checkpoints of integers in groups (GPTQ, AWQ, compressed-tensors `pack-quantized`) as a [`TensorSource`] of ordinary matrices.
//!
//! A weight is `scale * (code - zero)` with a scale and an integer zero point for each output and group of inputs. Codes of 4 or 8
//! bits are in words of 32 bits, lowest bits first, `per` of them in a word. A matrix `X.weight` of `[outputs, inputs]` is stored as:
//!
//! | | codes | zero points | scales | group of each input |
//! |---|---|---|---|---|
//! | GPTQ | `X.qweight` [inputs / per, outputs] | `X.qzeros` [groups, outputs / per] | `X.scales` [groups, outputs] | `X.g_idx` [inputs], or in order |
//! | AWQ | `X.qweight` [inputs, outputs / per] | `X.qzeros` [groups, outputs / per] | `X.scales` [groups, outputs] | in order |
//! | `pack-quantized` | `X.weight_packed` [outputs, inputs / per] | `X.weight_zero_point` [outputs / per, groups], or none | `X.weight_scale` [outputs, groups] | `X.weight_g_idx` [inputs], or in order |
//!
//! Quotients of `per` are rounded up. [`Scheme`] says what distinguishes them further. Shapes, element types and groups are checked when
//! the source is opened; codes, scales and zero points may be anything. Opening reads zero points and group indices, about a hundredth of
//! the file.
//!
//! Rows are unpacked sixteen at a time while they are packed, never the whole matrix, to one of these types:
//! * 4 bits, groups of a multiple of 32: [`DType::Int4`], exact. If all zero points are 8 and scales have 16 bits, [`DType::Q4_0`], with
//!   the same codes in less memory, whose scales are exact from 2^-14 on and rounded to multiples of 2^-24 below.
//! * 8 bits, such groups and zero points of 128: [`DType::Q8_0`], with the same codes; its scales are rounded to f16 as above, which is
//!   at most 2^-11 of them for f32 scales.
//! * Other 4-bit groups, that is inputs in the order of their activations (`desc_act`) or smaller groups: 32 consecutive inputs have
//!   several scales, so they are rounded to [`DType::Q8_0`], by at most a 254th of the largest of them.
//! * Everything else (8 bits with other zero points or groups, inputs that are no multiple of 32): [`DType::F16`], rounded by at most
//!   2^-11 of each weight.

mod matrix;
mod scheme;
#[cfg(test)]
mod tests;
mod unpack;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use super::error::quoted;
use super::{FormatError, Problem, RowBuffer, SafetensorsSet, TensorSource, TensorView};
use matrix::Matrix;
pub use scheme::Scheme;

#[cfg(doc)]
use crate::quant::DType;

/// A checkpoint whose quantised matrices appear under the names that they have in a float checkpoint.
#[derive(Debug)]
pub struct GroupedSource {
    files: SafetensorsSet,
    scheme: Scheme,
    /// By the name of the matrix, `X.weight`.
    matrices: HashMap<String, Matrix>,
    /// Names of all tensors: those of the matrices, and those of the files that belong to none.
    names: Vec<String>,
}

impl GroupedSource {
    /// Opens the given safetensors files as one model.
    pub fn open_files(paths: &[impl AsRef<Path>], scheme: Scheme) -> Result<Self, FormatError> {
        Self::of(SafetensorsSet::open_files(paths)?, scheme)
    }

    /// Checks the quantised matrices of files that are already open.
    pub fn of(files: SafetensorsSet, scheme: Scheme) -> Result<Self, FormatError> {
        let fail = |problem| FormatError::new(files.path(), problem);
        let (mut matrices, mut names, mut parts) = (HashMap::new(), Vec::new(), HashSet::new());
        for name in files.names() {
            let Some(stem) = name.strip_suffix(scheme.codes()) else {
                continue;
            };
            let matrix = Matrix::check(&files, scheme, stem).map_err(fail)?;
            let presented = format!("{stem}.weight");
            if files.contains(&presented) {
                let (what, name) = ("tensor", quoted(&presented));
                return Err(fail(Problem::Duplicate { what, name }));
            }
            let of_matrix = scheme.parts().iter().map(|part| format!("{stem}{part}"));
            parts.extend(of_matrix);
            names.push(presented.clone());
            matrices.insert(presented, matrix);
        }
        if matrices.is_empty() {
            let name = quoted(&format!("*{}", scheme.codes()));
            return Err(fail(Problem::NoTensor(name)));
        }
        let others = files.names().into_iter().map(str::to_owned);
        names.extend(others.filter(|name| !parts.contains(name)));
        Ok(Self {
            files,
            scheme,
            matrices,
            names,
        })
    }

    /// The bytes of a tensor that a matrix is made of.
    fn bytes(&self, name: &str) -> &[u8] {
        self.files.entry(name).expect("checked when opened").1
    }
}

impl TensorSource for GroupedSource {
    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        match self.matrices.get_key_value(name) {
            Some((name, matrix)) => Ok(TensorView {
                name,
                shape: &matrix.shape,
                dtype: matrix.dtype,
                bytes: &[],
            }),
            None => self.files.tensor(name),
        }
    }

    fn contains(&self, name: &str) -> bool {
        self.matrices.contains_key(name) || self.files.contains(name)
    }

    fn rows<'a>(
        &'a self,
        tensor: &TensorView<'a>,
        rows: Range<usize>,
        buffer: &'a mut RowBuffer,
    ) -> TensorView<'a> {
        let Some(matrix) = self.matrices.get(tensor.name) else {
            return self.files.rows(tensor, rows, buffer);
        };
        self.unpack(matrix, rows, buffer);
        TensorView {
            shape: &buffer.shape,
            bytes: &buffer.bytes,
            ..*tensor
        }
    }

    fn reading(&self) -> &'static str {
        self.scheme.name()
    }

    fn release(&self, name: &str) {
        match self.matrices.get(name) {
            Some(matrix) => matrix.parts().for_each(|part| self.files.release(part)),
            None => self.files.release(name),
        }
    }

    /// Rows of a quantised matrix may be in every page of it: nothing is released before the whole is.
    fn release_rows(&self, name: &str, rows: Range<usize>) {
        if !self.matrices.contains_key(name) {
            self.files.release_rows(name, rows);
        }
    }
}
