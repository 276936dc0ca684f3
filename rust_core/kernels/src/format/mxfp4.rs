//! Checkpoints with matrices of MXFP4 blocks (gpt-oss) as a [`TensorSource`].
//!
//! A block is 32 inputs of one output: 32 4-bit floats and a power of two that scales them. The matrices `X` of shape
//! `[.., outputs, inputs]` are stored as `X_blocks` `[.., outputs, inputs / 32, 16]`, two codes in a byte, the first in its low
//! half, and `X_scales` `[.., outputs, inputs / 32]`, a byte each. They are presented as [`DType::MXFP4`], which has the scale before
//! the codes, and the first half of the codes in the low halves of the bytes. Rows are rearranged while they are packed.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use super::error::quoted;
use super::safetensors::ElementType;
use super::{FormatError, Problem, RowBuffer, SafetensorsSet, TensorSource, TensorView};
use crate::quant::DType;

const BLOCKS: &str = "_blocks";
const SCALES: &str = "_scales";

/// Inputs of a block.
const BLOCK: usize = 32;
/// Bytes of its codes.
const CODES: usize = BLOCK / 2;

/// A checkpoint whose matrices of blocks appear under the names that they have in a float checkpoint.
#[derive(Debug)]
pub struct Mxfp4Source {
    files: SafetensorsSet,
    /// By name.
    matrices: HashMap<String, Matrix>,
    /// Names of all tensors: those of the matrices, and those of the files that belong to none.
    names: Vec<String>,
}

/// A stack of matrices, whose two tensors fit each other.
#[derive(Debug)]
struct Matrix {
    shape: Vec<usize>,
    /// Names of its tensors.
    blocks: String,
    scales: String,
}

impl Matrix {
    /// The matrix called `name`, whose tensors are checked.
    fn check(files: &SafetensorsSet, name: &str) -> Result<Self, Problem> {
        let (blocks, scales) = (format!("{name}{BLOCKS}"), format!("{name}{SCALES}"));
        let shape_of = |part: &str| {
            let found = files.entry(part);
            let (info, _) = found.ok_or_else(|| Problem::NoTensor(quoted(part)))?;
            if info.element != ElementType::Bytes {
                let reason = format!("whose blocks have element type {}", info.element);
                let name = quoted(name);
                return Err(Problem::BadGroups { name, reason });
            }
            Ok(info.shape.as_slice())
        };
        let (of_blocks, of_scales) = (shape_of(&blocks)?, shape_of(&scales)?);
        let inputs = match of_scales {
            [.., outputs, groups] if *outputs > 0 && *groups > 0 => groups.checked_mul(BLOCK),
            _ => None,
        };
        let fits = of_blocks.split_last() == Some((&CODES, of_scales));
        let Some(inputs) = inputs.filter(|_| fits) else {
            let reason = "whose blocks and scales have shapes that do not fit".to_owned();
            let name = quoted(name);
            return Err(Problem::BadGroups { name, reason });
        };
        let mut shape = of_scales.to_vec();
        shape.pop();
        shape.push(inputs);
        Ok(Self {
            shape,
            blocks,
            scales,
        })
    }
}

impl Mxfp4Source {
    /// Opens the given safetensors files as one model.
    pub fn open_files(paths: &[impl AsRef<Path>]) -> Result<Self, FormatError> {
        Self::of(SafetensorsSet::open_files(paths)?)
    }

    /// Checks the matrices of files that are already open.
    pub fn of(files: SafetensorsSet) -> Result<Self, FormatError> {
        let fail = |problem| FormatError::new(files.path(), problem);
        let (mut matrices, mut names, mut parts) = (HashMap::new(), Vec::new(), HashSet::new());
        for stored in files.names() {
            let Some(name) = stored.strip_suffix(BLOCKS) else {
                continue;
            };
            let matrix = Matrix::check(&files, name).map_err(fail)?;
            if files.contains(name) {
                let (what, name) = ("tensor", quoted(name));
                return Err(fail(Problem::Duplicate { what, name }));
            }
            parts.extend([matrix.blocks.clone(), matrix.scales.clone()]);
            names.push(name.to_owned());
            matrices.insert(name.to_owned(), matrix);
        }
        if matrices.is_empty() {
            return Err(fail(Problem::NoTensor(quoted(&format!("*{BLOCKS}")))));
        }
        let others = files.names().into_iter().map(str::to_owned);
        names.extend(others.filter(|name| !parts.contains(name)));
        Ok(Self {
            files,
            matrices,
            names,
        })
    }

    /// The bytes of a tensor that a matrix is made of.
    fn bytes(&self, name: &str) -> &[u8] {
        self.files.entry(name).expect("checked when opened").1
    }
}

impl TensorSource for Mxfp4Source {
    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        match self.matrices.get_key_value(name) {
            Some((name, matrix)) => Ok(TensorView {
                name,
                shape: &matrix.shape,
                dtype: DType::MXFP4,
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
        assert!(rows.start <= rows.end && rows.end <= tensor.rows());
        let each = tensor.cols() / BLOCK;
        let range = rows.start * each..rows.end * each;
        let codes: &[[u8; CODES]] = self.bytes(&matrix.blocks).as_chunks().0;
        let scales = &self.bytes(&matrix.scales)[range.clone()];
        buffer.bytes.clear();
        for (codes, &scale) in codes[range].iter().zip(scales) {
            buffer.bytes.push(scale);
            buffer.bytes.extend(halves(codes));
        }
        buffer.shape = [rows.len(), tensor.cols()];
        TensorView {
            shape: &buffer.shape,
            bytes: &buffer.bytes,
            ..*tensor
        }
    }

    fn reading(&self) -> &'static str {
        "mxfp4"
    }

    fn release(&self, name: &str) {
        match self.matrices.get(name) {
            Some(matrix) => {
                self.files.release(&matrix.blocks);
                self.files.release(&matrix.scales);
            }
            None => self.files.release(name),
        }
    }

    /// Rows of a matrix are released with all of it.
    fn release_rows(&self, name: &str, rows: Range<usize>) {
        if !self.matrices.contains_key(name) {
            self.files.release_rows(name, rows);
        }
    }
}

/// Codes in turn, low halves first, as bytes of the first and the second half of the codes.
fn halves(codes: &[u8; CODES]) -> [u8; CODES] {
    let code = |at: usize| codes[at / 2] >> (4 * (at % 2)) & 0xf;
    std::array::from_fn(|at| code(at) | code(at + CODES) << 4)
}

#[cfg(test)]
mod tests;
