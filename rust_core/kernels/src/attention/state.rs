//! A worker's working memory for attention.

use std::ops::Range;

use super::quantized_rows::QuantizedRows;
use super::softmax::{Factors, rescaled_sum};
use super::{CHUNK, MAX_ROWS};
use crate::simd::{LANES, Lanes};
use crate::spec::MAX_HEAD_DIM;

/// Memory aligned to a cache line: a vector that crosses into the next one costs two loads.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Aligned<T>(pub T);

/// The running maximum before any score: below every score, and finite, so that differences from it are defined.
pub(super) const NO_SCORE: f32 = f32::MIN;

/// Online softmax state of a task's rows, over one split or over all splits so far.
///
/// A row's output is `acc / sum`; both are relative to `2^max`.
#[derive(Debug)]
pub(super) struct State {
    pub max: [f32; MAX_ROWS],
    /// `[MAX_ROWS][16]`: sums of probabilities, lane by lane.
    sums: Box<Aligned<[[f32; LANES]; MAX_ROWS]>>,
    /// `[MAX_ROWS, dim]`: weighted sums of values, rows `dim` apart.
    acc: Box<Aligned<[f32; MAX_ROWS * MAX_HEAD_DIM]>>,
    dim: usize,
}

impl State {
    fn new() -> Self {
        Self {
            max: [NO_SCORE; MAX_ROWS],
            sums: Box::new(Aligned([[0.0; LANES]; MAX_ROWS])),
            acc: Box::new(Aligned([0.0; MAX_ROWS * MAX_HEAD_DIM])),
            dim: MAX_HEAD_DIM,
        }
    }

    /// Clear the first `rows` rows; rows have `dim` dimensions (whole vectors) from now on.
    pub fn reset(&mut self, rows: usize, dim: usize) {
        self.dim = dim;
        self.clear(0..rows);
    }

    /// Reset rows to the empty state.
    pub fn clear(&mut self, rows: Range<usize>) {
        self.max[rows.clone()].fill(NO_SCORE);
        self.sums.0[rows.clone()].fill([0.0; LANES]);
        self.acc.0[rows.start * self.dim..rows.end * self.dim].fill(0.0);
    }

    pub fn sums(&self, row: usize) -> &[f32; LANES] {
        &self.sums.0[row]
    }

    pub fn sums_mut(&mut self, row: usize) -> &mut [f32; LANES] {
        &mut self.sums.0[row]
    }

    pub fn acc(&self, row: usize) -> &[f32] {
        &self.acc.0[row * self.dim..][..self.dim]
    }

    /// The weighted sums of all rows from `row` on.
    pub fn acc_from(&mut self, row: usize) -> &mut [f32] {
        &mut self.acc.0[row * self.dim..]
    }

    /// Merge another state of a row, over other positions, into this one.
    ///
    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    pub unsafe fn merge<L: Lanes>(
        &mut self,
        row: usize,
        max: f32,
        sums: &[f32; LANES],
        acc: &[f32],
    ) {
        let largest = if max > self.max[row] {
            max
        } else {
            self.max[row]
        };
        // SAFETY: whole vectors inside the slices; instructions by the caller's promise.
        unsafe {
            let mine = L::splat(self.max[row] - largest).exp2();
            let theirs = L::splat(max - largest).exp2();
            self.max[row] = largest;
            let own = self.sums.0[row].as_mut_ptr();
            let other = (L::load(sums.as_ptr()), theirs);
            rescaled_sum((L::load(own), mine), other).store(own);
            let own = &mut self.acc.0[row * self.dim..][..self.dim];
            for (own, acc) in own.chunks_exact_mut(LANES).zip(acc.chunks_exact(LANES)) {
                let other = (L::load(acc.as_ptr()), theirs);
                let merged = rescaled_sum((L::load(own.as_ptr()), mine), other);
                merged.store(own.as_mut_ptr());
            }
        }
    }
}

/// Working memory of one worker, reused from task to task.
#[derive(Debug)]
pub struct Scratch {
    /// `[rows, dim]`: queries, contiguous.
    pub(super) q: Box<Aligned<[f32; MAX_ROWS * MAX_HEAD_DIM]>>,
    /// The same quantized to int8, for int8 keys.
    pub(super) queries: QuantizedRows<1, { MAX_ROWS * MAX_HEAD_DIM }>,
    /// `[MAX_ROWS][CHUNK]`: scores, then attention probabilities relative to the chunk's maximum.
    pub(super) probs: Box<Aligned<[[f32; CHUNK]; MAX_ROWS]>>,
    /// The probabilities times their values' scales, quantized to int8 pairs, for int8 values.
    pub(super) value_probs: QuantizedRows<2, { MAX_ROWS * CHUNK }>,
    /// Factors for adding the current chunk to the state.
    pub(super) factors: Factors,
    /// Of the current split.
    pub(super) current: State,
    /// Of the earlier splits.
    pub(super) total: State,
    /// A chunk's keys and values, converted to f32.
    pub(super) wide: Box<Aligned<[f32; 2 * CHUNK * MAX_HEAD_DIM]>>,
}

impl Scratch {
    pub fn new() -> Self {
        Self {
            q: Box::new(Aligned([0.0; MAX_ROWS * MAX_HEAD_DIM])),
            queries: QuantizedRows::new(),
            probs: Box::new(Aligned([[0.0; CHUNK]; MAX_ROWS])),
            value_probs: QuantizedRows::new(),
            factors: Factors::new(),
            current: State::new(),
            total: State::new(),
            wide: Box::new(Aligned([0.0; 2 * CHUNK * MAX_HEAD_DIM])),
        }
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}
