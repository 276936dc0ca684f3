//! The forward pass of a group of texts by one worker.

use std::ops::Range;

use super::attention::{HeadScratch, Text, attend};
use super::int8_rows::Int8Rows;
use super::weights::{BertWeights, Dense, Norm};
use super::{BertSpec, GROUP_TOKENS, Precision};
use crate::activation_quant::ScaleMode;
use crate::arena::Buffer;
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::gemm::{Activations, Gemm, Output, PanelScratch};
use crate::norm::{gelu, layer_norm};

/// Per-worker buffers, sized for the largest group and reused for all groups.
pub(super) struct Forward<'a> {
    spec: &'a BertSpec,
    weights: &'a BertWeights,
    level: Level,
    /// All `[tokens, hidden]`.
    residual: Buffer<f32>,
    query: Buffer<f32>,
    key: Buffer<f32>,
    value: Buffer<f32>,
    mixed: Buffer<f32>,
    /// `[tokens, intermediate]`
    inner: Buffer<f32>,
    /// Rows quantised for int8 products; None in f32.
    int8: Option<Int8Rows>,
    /// Unused by float panels, but required by [`Gemm`].
    panel: PanelScratch,
    head: HeadScratch,
}

impl<'a> Forward<'a> {
    pub fn new(
        spec: &'a BertSpec,
        weights: &'a BertWeights,
        precision: Precision,
        level: Level,
    ) -> Result<Self, KernelError> {
        // A group has at most GROUP_TOKENS tokens, or is a single text.
        let tokens = GROUP_TOKENS.max(spec.max_positions);
        let hidden = || Buffer::new(tokens * spec.hidden_size);
        let widest = spec.hidden_size.max(spec.intermediate_size);
        let (int8, panel) = match precision {
            Precision::F32 => (None, PanelScratch::new(0, 0)?),
            Precision::Int8 => (
                Some(Int8Rows::new(level, tokens, widest)?),
                PanelScratch::new(tokens, widest)?,
            ),
        };
        Ok(Self {
            spec,
            weights,
            level,
            residual: hidden()?,
            query: hidden()?,
            key: hidden()?,
            value: hidden()?,
            mixed: hidden()?,
            inner: Buffer::new(tokens * spec.intermediate_size)?,
            int8,
            panel,
            head: HeadScratch::default(),
        })
    }

    /// Compute the vectors of `texts`, consecutive ranges of `ids`: `[texts, hidden]`.
    pub fn run(&mut self, ids: &[i32], texts: &[Range<usize>], vectors: &mut [f32]) {
        let first = texts[0].start;
        let tokens = texts[texts.len() - 1].end - first;
        self.embed(ids, texts, first);
        let weights = self.weights;
        self.normalise(&weights.norm, tokens);
        for layer in &weights.layers {
            let projections = [
                (&layer.query, self.query.ptr()),
                (&layer.key, self.key.ptr()),
                (&layer.value, self.value.ptr()),
            ];
            self.multiply(self.residual.ptr(), &projections, tokens, false);
            self.attend(texts, first);
            let residual = self.residual.ptr();
            self.multiply(
                self.mixed.ptr(),
                &[(&layer.attention, residual)],
                tokens,
                true,
            );
            self.normalise(&layer.attention_norm, tokens);
            self.multiply(residual, &[(&layer.up, self.inner.ptr())], tokens, false);
            // SAFETY: the buffer is this worker's alone; the level was checked at load.
            unsafe {
                let inner = self
                    .inner
                    .slice_mut(0, tokens * self.spec.intermediate_size);
                gelu(self.level, inner);
            }
            self.multiply(self.inner.ptr(), &[(&layer.down, residual)], tokens, true);
            self.normalise(&layer.norm, tokens);
        }
        let rows = vectors.chunks_exact_mut(self.spec.hidden_size);
        for (text, vector) in texts.iter().zip(rows) {
            self.pool(text.start - first..text.end - first, vector);
        }
    }

    fn embed(&mut self, ids: &[i32], texts: &[Range<usize>], first: usize) {
        let width = self.spec.hidden_size;
        for text in texts {
            for (position, at) in text.clone().enumerate() {
                let word = &self.weights.words[ids[at] as usize * width..][..width];
                let place = &self.weights.positions[position * width..][..width];
                // SAFETY: the buffer is this worker's alone.
                let row = unsafe { self.residual.slice_mut((at - first) * width, width) };
                for ((out, word), place) in row.iter_mut().zip(word).zip(place) {
                    *out = word + place;
                }
            }
        }
    }

    /// Layer norm of the residual rows, in place.
    fn normalise(&self, norm: &Norm, tokens: usize) {
        let width = self.spec.hidden_size;
        for token in 0..tokens {
            // SAFETY: the buffer is this worker's alone; the level was checked at load.
            unsafe {
                let row = self.residual.slice_mut(token * width, width);
                let eps = self.spec.layer_norm_eps;
                layer_norm(self.level, row, &norm.weight, &norm.bias, eps);
            }
        }
    }

    /// `out = input · matrix + bias` for each of `products`, or `out += …` if accumulating. All matrices have the same inputs.
    ///
    /// `input` and the outputs are buffers of this worker that hold `tokens` rows.
    fn multiply(
        &mut self,
        input: *const f32,
        products: &[(&Dense, *mut f32)],
        tokens: usize,
        accumulate: bool,
    ) {
        let inputs = products[0].0.matrix.inputs;
        let quant = self.int8.as_mut().map(|rows| {
            // SAFETY: `tokens` rows of a buffer that nothing writes meanwhile; the level was checked at load.
            unsafe {
                let values = std::slice::from_raw_parts(input, tokens * inputs);
                rows.fill(values, inputs)
            }
        });
        let activations = Activations {
            quant,
            scale_mode: ScaleMode::MaxAbs,
            float: input,
            float_stride: inputs,
        };
        // SAFETY: the level was checked at load; the buffers are this worker's alone and hold `tokens` rows.
        let mut gemm = unsafe { Gemm::new(self.level, &activations, tokens, &mut self.panel) };
        for (dense, out) in products {
            let matrix = &dense.matrix;
            let panels = 0..matrix.panels();
            // The next matrix is unknown here, so its last panel is passed as the prefetch target.
            let next = matrix.panel(panels.end - 1);
            let output = Output {
                out: *out,
                stride: matrix.outputs,
                accumulate,
                bias: dense.bias.as_ptr(),
            };
            // SAFETY: both buffers are this worker's alone and hold `tokens` rows of the matrix's inputs
            // and outputs; outputs are a multiple of a panel's columns, and so is the bias; the rows were quantised if the
            // panels are. The level was checked at load.
            unsafe { gemm.panels(matrix, panels, next, output) };
        }
    }

    fn attend(&mut self, texts: &[Range<usize>], first: usize) {
        let width = self.spec.hidden_size;
        for text in texts {
            let start = (text.start - first) * width;
            for head in 0..self.spec.num_heads {
                // SAFETY: the text's rows are inside the buffers, which are this worker's alone; the
                // level was checked at load, the head's width with the spec.
                unsafe {
                    let text = Text {
                        query: self.query.ptr().add(start),
                        key: self.key.ptr().add(start),
                        value: self.value.ptr().add(start),
                        out: self.mixed.ptr().add(start),
                        tokens: text.len(),
                        width,
                        head_dim: self.spec.head_dim(),
                    };
                    attend(self.level, text, head, &mut self.head);
                }
            }
        }
    }

    /// Mean of a text's rows, scaled to length 1. Summed in double precision, in order.
    fn pool(&self, rows: Range<usize>, vector: &mut [f32]) {
        let width = self.spec.hidden_size;
        let count = rows.len() as f64;
        // SAFETY: the buffer is this worker's alone.
        let states = unsafe { self.residual.slice(rows.start * width, rows.len() * width) };
        let mut sums = vec![0.0f64; width];
        for row in states.chunks_exact(width) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += f64::from(value);
            }
        }
        let length = sums
            .iter()
            .map(|sum| (sum / count).powi(2))
            .sum::<f64>()
            .sqrt();
        let scale = 1.0 / (count * length.max(1e-12));
        for (out, sum) in vector.iter_mut().zip(sums) {
            *out = (sum * scale) as f32;
        }
    }
}
