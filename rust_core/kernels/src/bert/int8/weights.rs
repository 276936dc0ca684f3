//! A matrix of bytes.

use super::PADDING;
use super::dots::QUAD;
use crate::arena::Buffer;
use crate::error::KernelError;
use crate::pack::layout::PANEL_COLUMNS;

/// The largest code. Sums of two products with a row's codes then exceed 16 bits, but those of a whole row fit 32.
const MAX_CODE: f32 = 127.0;

/// The most inputs for which a dot product is below 2^31: 255 · 127 for each.
pub(in crate::bert) const MAX_INPUTS: usize = i32::MAX as usize / (255 * 127);

/// A matrix as int8 codes with a scale for each output, and its bias.
///
/// Codes are in panels of 16 outputs. A panel is a stream of quads: four inputs of each output, output by output.
#[derive(Debug)]
pub(in crate::bert) struct ByteMatrix {
    outputs: usize,
    inputs: usize,
    codes: Buffer<i8>,
    pub(super) scales: Vec<f32>,
    /// What a result has for each unit of a row's low end: the sum of an output's weights.
    pub(super) sums: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

impl ByteMatrix {
    /// Quantise `weights`, `[outputs, inputs]` with as many outputs as `bias` has, a multiple of 16.
    ///
    /// # Errors
    /// Memory is short.
    pub fn new(weights: &[f32], bias: Vec<f32>, inputs: usize) -> Result<Self, KernelError> {
        let outputs = bias.len();
        assert!(weights.len() == outputs * inputs && outputs.is_multiple_of(PANEL_COLUMNS));
        assert!(inputs <= MAX_INPUTS);
        let mut matrix = Self {
            outputs,
            inputs,
            codes: Buffer::new(outputs * inputs.next_multiple_of(PADDING))?,
            scales: Vec::with_capacity(outputs),
            sums: Vec::with_capacity(outputs),
            bias,
        };
        for (output, row) in weights.chunks_exact(inputs).enumerate() {
            matrix.push(output, row);
        }
        Ok(matrix)
    }

    /// Quantise the weights of the next output.
    fn push(&mut self, output: usize, row: &[f32]) {
        let largest = row.iter().fold(0.0f32, |most, w| most.max(w.abs()));
        let scale = largest / MAX_CODE;
        // The reciprocal of tiny weights is infinite: all are then zero.
        let inverse = 1.0 / scale;
        let inverse = if inverse.is_finite() { inverse } else { 0.0 };
        let codes: Vec<i8> = row
            .iter()
            .map(|w| (w * inverse).round_ties_even() as i8)
            .collect();
        let sum: i32 = codes.iter().copied().map(i32::from).sum();
        let panel = output / PANEL_COLUMNS * self.panel_stride();
        let into = self.codes.as_mut_slice();
        for (quad, codes) in codes.chunks(QUAD).enumerate() {
            let at = panel + (quad * PANEL_COLUMNS + output % PANEL_COLUMNS) * QUAD;
            into[at..at + codes.len()].copy_from_slice(codes);
        }
        self.scales.push(scale);
        self.sums.push(scale * sum as f32);
    }

    pub fn outputs(&self) -> usize {
        self.outputs
    }

    pub fn inputs(&self) -> usize {
        self.inputs
    }

    pub(super) fn panels(&self) -> usize {
        self.outputs / PANEL_COLUMNS
    }

    /// Bytes between panels.
    pub(super) fn panel_stride(&self) -> usize {
        self.inputs.next_multiple_of(PADDING) * PANEL_COLUMNS
    }

    /// First code of a panel.
    pub(super) fn panel(&self, panel: usize) -> *const i8 {
        assert!(panel < self.panels());
        self.codes.ptr().wrapping_add(panel * self.panel_stride())
    }
}
