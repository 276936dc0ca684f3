//! One head of gated DeltaNet or Mamba2 over the tokens of a run: from projected rows to gated outputs.

use super::gate::{gate_with_silu, softplus};
use super::scan::{HeadShape, MAX_TOKENS, ScanScratch, normalize_length, scan};
use crate::activation::sigmoid;
use crate::dispatch::Level;
use crate::norm::rms_norm_in_place;
use crate::pack::PANEL_COLUMNS;

/// The heads of a layer, and where their inputs are in its projected rows.
///
/// A row has the outputs of the convolution, then those of the other projections: the output gate `z`, the logits of the
/// strength (gated DeltaNet only), and the time step. Each part begins at a whole panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    pub shape: HeadShape,
    /// Number of heads.
    pub count: usize,
    /// Heads with a query and a key of their own; each is shared by `count / key_count` heads.
    pub key_count: usize,
    /// Whether head `h` uses key `h % key_count`; otherwise it uses `h / (count / key_count)`.
    pub tiled: bool,
}

/// Columns of a projected row at which its parts begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLayout {
    pub q: usize,
    pub k: usize,
    pub v: usize,
    pub z: usize,
    pub strength: usize,
    pub time_step: usize,
    /// All columns.
    pub width: usize,
}

impl Heads {
    /// Widths of all queries (or keys), and of all values.
    fn widths(&self) -> (usize, usize) {
        let shape = self.shape;
        (self.key_count * shape.key_dim, self.count * shape.value_dim)
    }

    /// Channels of the convolution.
    pub fn channels(&self) -> usize {
        let (keys, values) = self.widths();
        2 * keys + values
    }

    /// Width of the outputs.
    pub fn outputs(&self) -> usize {
        self.widths().1
    }

    /// Where the parts of a projected row are: the convolution's are q, k, v with the delta rule, and v, k, q otherwise.
    pub fn layout(&self) -> RowLayout {
        let pad = |width: usize| width.next_multiple_of(PANEL_COLUMNS);
        let (keys, values) = self.widths();
        let (q, k, v) = if self.shape.delta {
            (0, keys, 2 * keys)
        } else {
            (values + keys, values, 0)
        };
        let z = pad(self.channels());
        let strength = z + pad(values);
        let time_step = strength + if self.shape.delta { pad(self.count) } else { 0 };
        RowLayout {
            q,
            k,
            v,
            z,
            strength,
            time_step,
            width: time_step + pad(self.count),
        }
    }

    /// The query and key of head `head`.
    pub fn key_of(&self, head: usize) -> usize {
        if self.tiled {
            head % self.key_count
        } else {
            head / (self.count / self.key_count)
        }
    }
}

/// Weights of the heads of a layer.
#[derive(Debug)]
pub struct HeadWeights {
    /// `[heads]`, negative: the logarithm of a head's decay is this times its time step.
    pub rates: Vec<f32>,
    /// `[heads]`: the share of the values that is added to the outputs; empty for none.
    pub skip: Vec<f32>,
    /// `[value_dim]`: norm of each head's output before its gate; empty if the norm follows the gate.
    pub norm: Vec<f32>,
    pub norm_eps: f32,
}

/// Rows of floats, one per token.
#[derive(Debug, Clone, Copy)]
pub struct TokenRows {
    pub start: *mut f32,
    pub stride: usize,
}

impl TokenRows {
    /// One value of a row.
    ///
    /// # Safety
    /// It exists, and no thread writes it.
    unsafe fn value(self, row: usize, column: usize) -> f32 {
        // SAFETY: by contract.
        unsafe { *self.start.add(row * self.stride + column) }
    }

    /// `len` values of a row.
    ///
    /// # Safety
    /// They exist, and no thread writes them during `'a`.
    unsafe fn part<'a>(self, row: usize, column: usize, len: usize) -> &'a [f32] {
        // SAFETY: by contract.
        unsafe { std::slice::from_raw_parts(self.start.add(row * self.stride + column), len) }
    }

    /// The same, writable.
    ///
    /// # Safety
    /// They exist, and nothing else accesses them during `'a`.
    unsafe fn part_mut<'a>(self, row: usize, column: usize, len: usize) -> &'a mut [f32] {
        // SAFETY: by contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.stride + column), len) }
    }
}

/// A head over the tokens of a run.
#[derive(Debug, Clone, Copy)]
pub struct HeadRun<'a> {
    pub heads: &'a Heads,
    pub weights: &'a HeadWeights,
    pub head: usize,
    pub tokens: usize,
    /// Projected rows of the tokens, see [`RowLayout`].
    pub projected: TokenRows,
    /// Rows of [`Heads::outputs`] values, of which the head's are written.
    pub output: TokenRows,
    /// [`HeadShape::state_len`] floats, replaced by those after the run.
    pub state: *mut f32,
    /// Whether the state is that of no tokens, whatever it contains.
    pub fresh: bool,
}

impl HeadRun<'_> {
    /// Apply the tokens to the state and write the head's gated outputs.
    ///
    /// # Safety
    /// The machine has the level; the rows and the state are valid; no other thread writes the projected rows, or accesses
    /// the state and the head's outputs.
    pub unsafe fn run(&self, level: Level, scratch: &mut ScanScratch) {
        let shape = self.heads.shape;
        if self.fresh {
            // SAFETY: by contract; zero bytes are zeros.
            unsafe { self.state.write_bytes(0, shape.state_len()) };
        }
        for first in (0..self.tokens).step_by(MAX_TOKENS) {
            let count = MAX_TOKENS.min(self.tokens - first);
            // SAFETY: by contract.
            unsafe {
                for at in 0..count {
                    self.load(level, first + at, at, scratch);
                }
                scan(level, shape, count, scratch, self.state);
                for at in 0..count {
                    self.finish(level, first + at, at, scratch);
                }
            }
        }
    }

    /// Copy the inputs of token `token` to entry `at` of `scratch`.
    ///
    /// # Safety
    /// As [`HeadRun::run`].
    unsafe fn load(&self, level: Level, token: usize, at: usize, scratch: &mut ScanScratch) {
        let (heads, shape, layout) = (self.heads, self.heads.shape, self.heads.layout());
        let (dim, key) = (shape.key_dim, heads.key_of(self.head));
        // SAFETY: by contract; the scratch is this worker's alone, and its arrays are checked against the entry.
        unsafe {
            let q = self.projected.part(token, layout.q + key * dim, dim);
            let k = self.projected.part(token, layout.k + key * dim, dim);
            let v = self.values(token);
            let (to_q, to_k) = (
                scratch.q.slice_mut(at * dim, dim),
                scratch.k.slice_mut(at * dim, dim),
            );
            let to_v = scratch.v.slice_mut(at * shape.padded(), shape.value_dim);
            to_v.copy_from_slice(v);
            let time_step = self.projected.value(token, layout.time_step + self.head);
            let time_step = softplus(time_step);
            scratch.decay[at] = (self.weights.rates[self.head] * time_step).exp();
            if shape.delta {
                normalize_length(level, q, 1.0 / (dim as f32).sqrt(), to_q);
                normalize_length(level, k, 1.0, to_k);
                let logit = self.projected.value(token, layout.strength + self.head);
                scratch.strength[at] = sigmoid(logit);
            } else {
                to_q.copy_from_slice(q);
                to_k.copy_from_slice(k);
                scratch.strength[at] = time_step;
            }
        }
    }

    /// The values of a token.
    ///
    /// # Safety
    /// As [`HeadRun::run`].
    unsafe fn values(&self, token: usize) -> &[f32] {
        let dim = self.heads.shape.value_dim;
        let column = self.heads.layout().v + self.head * dim;
        // SAFETY: by contract.
        unsafe { self.projected.part(token, column, dim) }
    }

    /// Write the output of token `token` from entry `at` of `scratch`.
    ///
    /// # Safety
    /// As [`HeadRun::run`].
    unsafe fn finish(&self, level: Level, token: usize, at: usize, scratch: &ScanScratch) {
        let shape = self.heads.shape;
        let (dim, column) = (shape.value_dim, self.head * shape.value_dim);
        // SAFETY: by contract; the scratch is this worker's alone.
        unsafe {
            let z = self
                .projected
                .part(token, self.heads.layout().z + column, dim);
            let output = self.output.part_mut(token, column, dim);
            output.copy_from_slice(scratch.o.slice(at * shape.padded(), dim));
            if let Some(skip) = self.weights.skip.get(self.head) {
                for (output, value) in output.iter_mut().zip(self.values(token)) {
                    *output += skip * value;
                }
            }
            if !self.weights.norm.is_empty() {
                rms_norm_in_place(level, output, &self.weights.norm, self.weights.norm_eps);
            }
            gate_with_silu(level, output, z);
        }
    }
}
