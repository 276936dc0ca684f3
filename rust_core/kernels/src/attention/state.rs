//! A worker's memory for attention.

use std::ops::Range;

use super::numbers::Numbers;
use super::softmax::Factors;
use super::{CHUNK, MAX_ROWS};
use crate::simd::{LANES, Lanes};
use crate::spec::MAX_HEAD_DIM;

/// Memory that begins a cache line: a vector that crosses into the next one costs two loads.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Aligned<T>(pub T);

/// The largest score of nothing: below every score, and no difference from it is undefined.
pub(super) const NO_SCORE: f32 = f32::MIN;

/// Running softmax of a task's rows: what they have seen of a split, or of all splits so far.
///
/// A row's value is `acc / sum`, both relative to `2^max`.
#[derive(Debug)]
pub(super) struct State {
    pub max: [f32; MAX_ROWS],
    /// `[MAX_ROWS][16]`: sums of weights, lane by lane.
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

    /// Forget everything; rows have `dim` dimensions (whole vectors) from now on.
    pub fn reset(&mut self, rows: usize, dim: usize) {
        self.dim = dim;
        self.clear(0..rows);
    }

    /// Forget what some rows have seen.
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

    /// All rows' weighted sums from row `row` on.
    pub fn acc_from(&mut self, row: usize) -> &mut [f32] {
        &mut self.acc.0[row * self.dim..]
    }

    /// Merge what a row has seen elsewhere into it.
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
            let sum = L::load(sums.as_ptr()).mul(theirs);
            L::load(own).mul_add(mine, sum).store(own);
            let own = &mut self.acc.0[row * self.dim..][..self.dim];
            for (own, acc) in own.chunks_exact_mut(LANES).zip(acc.chunks_exact(LANES)) {
                let sum = L::load(acc.as_ptr()).mul(theirs);
                L::load(own.as_ptr())
                    .mul_add(mine, sum)
                    .store(own.as_mut_ptr());
            }
        }
    }
}

/// Working memory of one worker, reused from task to task.
#[derive(Debug)]
pub struct Scratch {
    /// `[rows, dim]`: queries, side by side.
    pub(super) q: Box<Aligned<[f32; MAX_ROWS * MAX_HEAD_DIM]>>,
    /// The same as integers, for keys that are codes.
    pub(super) queries: Numbers<1, { MAX_ROWS * MAX_HEAD_DIM }>,
    /// `[MAX_ROWS][CHUNK]`: scores, then weights.
    pub(super) weights: Box<Aligned<[[f32; CHUNK]; MAX_ROWS]>>,
    /// The weights times their values' scales, as integers, for values that are codes.
    pub(super) value_weights: Numbers<2, { MAX_ROWS * CHUNK }>,
    /// With which a chunk is added to the state.
    pub(super) factors: Factors,
    /// Of the split at hand.
    pub(super) current: State,
    /// Of the splits before.
    pub(super) total: State,
    /// A chunk's keys and values as floats.
    pub(super) wide: Box<Aligned<[f32; 2 * CHUNK * MAX_HEAD_DIM]>>,
}

impl Scratch {
    pub fn new() -> Self {
        Self {
            q: Box::new(Aligned([0.0; MAX_ROWS * MAX_HEAD_DIM])),
            queries: Numbers::new(),
            weights: Box::new(Aligned([[0.0; CHUNK]; MAX_ROWS])),
            value_weights: Numbers::new(),
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
