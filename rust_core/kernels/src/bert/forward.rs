//! The forward pass of a group of texts by one worker.

use std::ops::Range;

use super::attention::{HeadScratch, Text, attend, attend_bytes};
use super::int8::{self, ByteRows, Finish, Range as CodeRange, Target};
use super::weights::{BertWeights, FloatMatrix, Matrix, Norm};
use super::{BertSpec, Precision};
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
    precision: Precision,
    level: Level,
    /// All `[tokens, hidden]`.
    residual: Buffer<f32>,
    query: Buffer<f32>,
    key: Buffer<f32>,
    value: Buffer<f32>,
    mixed: Buffer<f32>,
    /// `[tokens, intermediate]`
    inner: Buffer<f32>,
    /// Rows quantised for int8 products; without any room in f32.
    bytes: ByteRows,
    /// Keys of the present layer; without any room in f32.
    key_bytes: ByteRows,
    /// Unused by float panels, but required by [`Gemm`].
    panel: PanelScratch,
    head: HeadScratch,
}

impl<'a> Forward<'a> {
    /// Buffers for groups of at most `tokens` tokens.
    pub fn new(
        spec: &'a BertSpec,
        weights: &'a BertWeights,
        precision: Precision,
        level: Level,
        tokens: usize,
    ) -> Result<Self, KernelError> {
        let hidden = || Buffer::new(tokens * spec.hidden_size);
        let widest = spec.hidden_size.max(spec.intermediate_size);
        let rows = match precision {
            Precision::F32 => 0,
            Precision::Int8 => tokens,
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
            bytes: ByteRows::new(level, rows, widest)?,
            key_bytes: ByteRows::new(level, rows, spec.hidden_size)?,
            precision,
            panel: PanelScratch::new(0, 0)?,
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
            self.multiply(self.residual.ptr(), &projections, tokens, Finish::Store);
            self.attend(texts, first, tokens);
            let residual = self.residual.ptr();
            let product = [(&layer.attention, residual)];
            self.multiply(self.mixed.ptr(), &product, tokens, Finish::Add);
            self.normalise(&layer.attention_norm, tokens);
            let product = [(&layer.up, self.inner.ptr())];
            self.multiply(residual, &product, tokens, Finish::Gelu);
            let product = [(&layer.down, residual)];
            self.multiply(self.inner.ptr(), &product, tokens, Finish::Add);
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

    /// `input · matrix + bias` for each of `products`, stored in or added to its output. All matrices have the same inputs.
    ///
    /// `input` and the outputs are buffers of this worker that hold `tokens` rows.
    fn multiply(
        &mut self,
        input: *const f32,
        products: &[(&Matrix, *mut f32)],
        tokens: usize,
        finish: Finish,
    ) {
        if let Matrix::Bytes(first) = products[0].0 {
            // SAFETY: `tokens` rows of a buffer that nothing writes meanwhile; the level was checked at load.
            unsafe {
                let values = std::slice::from_raw_parts(input, tokens * first.inputs());
                self.bytes.fill(values, first.inputs(), CodeRange::Whole);
            }
        }
        for (dense, out) in products {
            match dense {
                Matrix::Bytes(matrix) => {
                    let target = Target { out: *out, finish };
                    // SAFETY: the buffer is this worker's alone and holds `tokens` rows of the matrix's outputs; the level was
                    // checked at load.
                    unsafe { int8::multiply(self.level, &self.bytes, matrix, target) };
                }
                Matrix::Float(matrix) => self.multiply_floats(input, matrix, *out, tokens, finish),
            }
        }
    }

    /// [`Self::multiply`] with one matrix of floats.
    fn multiply_floats(
        &mut self,
        input: *const f32,
        dense: &FloatMatrix,
        out: *mut f32,
        tokens: usize,
        finish: Finish,
    ) {
        let matrix = &dense.matrix;
        let activations = Activations {
            quant: None,
            scale_mode: ScaleMode::MaxAbs,
            float: input,
            float_stride: matrix.inputs,
        };
        let panels = 0..matrix.panels();
        // The next matrix is unknown here, so its last panel is passed as the prefetch target.
        let next = matrix.panel(panels.end - 1);
        let output = Output {
            out,
            stride: matrix.outputs,
            accumulate: finish == Finish::Add,
            bias: dense.bias.as_ptr(),
        };
        // SAFETY: both buffers are this worker's alone and hold `tokens` rows of the matrix's inputs and outputs; outputs are a
        // multiple of a panel's columns, and so is the bias. The level was checked at load.
        unsafe {
            let mut gemm = Gemm::new(self.level, &activations, tokens, &mut self.panel);
            gemm.panels(matrix, panels, next, output);
            if finish == Finish::Gelu {
                let results = std::slice::from_raw_parts_mut(out, tokens * matrix.outputs);
                gelu(self.level, results);
            }
        }
    }

    fn attend(&mut self, texts: &[Range<usize>], first: usize, tokens: usize) {
        let width = self.spec.hidden_size;
        if self.precision == Precision::Int8 {
            // SAFETY: buffers of this worker that hold `tokens` rows; the level was checked at load.
            unsafe {
                let (queries, keys) = (
                    self.query.slice(0, tokens * width),
                    self.key.slice(0, tokens * width),
                );
                self.bytes.fill(queries, width, CodeRange::Whole);
                self.key_bytes.fill(keys, width, CodeRange::Symmetric);
            }
        }
        for text in texts {
            let row = text.start - first;
            let start = row * width;
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
                    match self.precision {
                        Precision::F32 => attend(self.level, text, head, &mut self.head),
                        Precision::Int8 => {
                            let rows = [&self.bytes, &self.key_bytes];
                            attend_bytes(self.level, text, head, rows, row, &mut self.head);
                        }
                    }
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
