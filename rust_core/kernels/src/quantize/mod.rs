//! Quantising float weights while they are packed.
//!
//! Sixteen outputs, a panel, are quantised together: vector lanes are outputs, so sums over a group need no reduction across
//! lanes, and every dispatch level computes the same codes. The result is blocks of a file format ([`DType`]), which are packed
//! as if a file contained them. Products and sums are rounded separately, never fused: weights quantised on one machine are
//! those of any other.
//!
//! [`WeightMode`] determines the format of each matrix.

mod affine_fit;
mod blocks;
mod q4_1;
mod q4_k;
mod q6_k;
mod q8_0;
mod symmetric_fit;
#[cfg(test)]
mod tests;
mod weight_mode;

use std::ops::Range;

pub use weight_mode::{Role, WeightMode};

use crate::dispatch::Level;
use crate::format::TensorView;
use crate::pack::PANEL_COLUMNS;
use crate::quant::{DType, dequantize_row};
use crate::simd::LANES;

/// The types that weights are quantised to.
pub const QUANTIZED_TO: [DType; 4] = [DType::Q8_0, DType::Q4_1, DType::Q4K, DType::Q6K];

/// One input's weights of sixteen outputs.
type Lane16 = [f32; LANES];

const _: () = assert!(PANEL_COLUMNS == LANES);

/// Quantises float rows to blocks of a file format. Reuses its memory; one for each worker.
#[derive(Debug, Default)]
pub struct Quantizer {
    /// A row's weights of one block.
    row: Vec<f32>,
    /// A block's weights of all rows, one input after the other.
    values: Vec<Lane16>,
    bytes: Vec<u8>,
    shape: [usize; 2],
}

impl Quantizer {
    /// Rows `outputs` (at most 16) of the float matrix `tensor` as a matrix of type `target`, valid until the next call.
    ///
    /// A row with a weight that is not finite, or beyond the range of f16, has NaN weights in that block.
    ///
    /// # Panics
    /// If `tensor` is quantised, `target` is not one of [`QUANTIZED_TO`], or rows are not whole blocks of it.
    pub fn quantize<'a>(
        &'a mut self,
        level: Level,
        tensor: &TensorView<'a>,
        target: DType,
        outputs: Range<usize>,
    ) -> TensorView<'a> {
        let (block_len, block_bytes) = (target.block_len(), target.block_bytes());
        assert!(!tensor.dtype.is_quantized() && outputs.len() <= LANES);
        assert!(tensor.cols().is_multiple_of(block_len));
        let row_bytes = tensor.cols() / block_len * block_bytes;
        self.shape = [outputs.len(), tensor.cols()];
        self.bytes.resize(outputs.len() * row_bytes, 0);
        self.row.resize(block_len, 0.0);
        // Lanes without an output are zeros.
        self.values.clear();
        self.values.resize(block_len, [0.0; LANES]);
        for block in 0..tensor.cols() / block_len {
            let stored = block_len * tensor.dtype.block_bytes();
            for (lane, output) in outputs.clone().enumerate() {
                let bytes = &tensor.row(output)[block * stored..][..stored];
                dequantize_row(tensor.dtype, bytes, &mut self.row);
                for (values, &value) in self.values.iter_mut().zip(&self.row) {
                    values[lane] = value;
                }
            }
            let rows = self.bytes.chunks_exact_mut(row_bytes.max(1));
            let blocks = rows.map(|row| &mut row[block * block_bytes..][..block_bytes]);
            blocks::quantize(level, target, &self.values, blocks);
        }
        TensorView {
            name: tensor.name,
            shape: &self.shape,
            dtype: target,
            bytes: &self.bytes,
        }
    }
}
