//! The interface to model files used by weight packing.

use std::ops::Range;

use super::FormatError;
use crate::quant::DType;

/// A tensor as stored. Its bytes are borrowed from the mapped file.
#[derive(Debug, Clone, Copy)]
pub struct TensorView<'a> {
    pub name: &'a str,
    /// Row-major, slowest dimension first; a matrix is `[rows (outputs), cols (inputs)]`.
    pub shape: &'a [usize],
    pub dtype: DType,
    /// `rows() * row_bytes()` bytes, of no particular alignment; none if the source unpacks its rows ([`TensorSource::rows`]).
    pub bytes: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// Product of every dimension but the last; 1 for a vector.
    pub fn rows(&self) -> usize {
        self.shape[..self.shape.len().saturating_sub(1)]
            .iter()
            .product()
    }

    /// The contiguous dimension, in elements; 1 for a scalar.
    pub fn cols(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Bytes of one row. Rows hold whole quantisation blocks.
    pub fn row_bytes(&self) -> usize {
        self.cols() / self.dtype.block_len() * self.dtype.block_bytes()
    }

    /// The bytes of row `row`.
    ///
    /// # Panics
    /// If `row >= self.rows()`.
    pub fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.row_bytes()..][..self.row_bytes()]
    }

    /// Whether `bytes` are its rows, in order.
    pub fn is_stored(&self) -> bool {
        self.bytes.len() == self.rows() * self.row_bytes()
    }

    /// Where in `bytes` these rows are; None if they are not all in the tensor.
    pub fn row_range(&self, rows: Range<usize>) -> Option<Range<usize>> {
        let inside = rows.start <= rows.end && rows.end <= self.rows();
        inside.then(|| rows.start * self.row_bytes()..rows.end * self.row_bytes())
    }
}

/// Memory of rows that a source unpacked, reused; one for each worker.
#[derive(Debug, Default)]
pub struct RowBuffer {
    /// Of the returned rows.
    pub(super) shape: [usize; 2],
    /// The returned rows, if they are not those of the file.
    pub(super) bytes: Vec<u8>,
    /// `[rows][inputs]`
    pub(super) codes: Vec<u8>,
    /// `[rows][groups]`
    pub(super) scales: Vec<f32>,
    /// `[rows][groups]`
    pub(super) zeros: Vec<u8>,
}

impl RowBuffer {
    /// Rows `rows` of `tensor`, whose bytes are stored, as a matrix of their own.
    ///
    /// # Panics
    /// If the tensor has fewer rows.
    pub fn select<'a>(&'a mut self, tensor: &TensorView<'a>, rows: Range<usize>) -> TensorView<'a> {
        self.shape = [rows.len(), tensor.cols()];
        let bytes = tensor.row_range(rows).expect("rows of the tensor");
        TensorView {
            shape: &self.shape,
            bytes: &tensor.bytes[bytes],
            ..*tensor
        }
    }
}

/// Named tensors backed by memory-mapped files. Shared between threads without locks.
pub trait TensorSource: Send + Sync {
    /// Every tensor's name, in file order.
    fn names(&self) -> Vec<&str>;

    /// The tensor called `name`. O(1); touches none of its pages.
    ///
    /// # Errors
    /// There is no such tensor, or its element type is not supported.
    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError>;

    /// Whether a tensor of that name exists.
    fn contains(&self, name: &str) -> bool {
        self.tensor(name).is_ok()
    }

    /// Rows `rows` of `tensor`, one of this source's, as a matrix of their own, valid until the next call.
    ///
    /// # Panics
    /// If the tensor has fewer rows.
    fn rows<'a>(
        &'a self,
        tensor: &TensorView<'a>,
        rows: Range<usize>,
        buffer: &'a mut RowBuffer,
    ) -> TensorView<'a> {
        buffer.select(tensor, rows)
    }

    /// How the files' numbers are read, as far as their headers do not say: part of what identifies packed weights.
    fn reading(&self) -> &'static str {
        ""
    }

    /// Drops the resident pages of `name`, after its weights were repacked. Views of it stay valid: a
    /// later read comes from the page cache or the disk again. Unknown names are ignored.
    fn release(&self, name: &str);

    /// As [`Self::release`] for some rows only. Unknown names and rows outside the tensor are ignored.
    fn release_rows(&self, name: &str, rows: Range<usize>);
}
