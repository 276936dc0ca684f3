//! The running softmax of some rows, one chunk further.

use super::state::{NO_SCORE, State};
use super::{CHUNK, MAX_ROWS};
use crate::simd::{LANES, Lanes};

/// What rows' weighted values are multiplied with where a chunk's are added to those of the chunks before.
#[derive(Debug)]
pub(super) struct Factors {
    pub before: [f32; MAX_ROWS],
    pub chunk: [f32; MAX_ROWS],
}

impl Factors {
    pub fn new() -> Self {
        Self {
            before: [0.0; MAX_ROWS],
            chunk: [0.0; MAX_ROWS],
        }
    }
}

/// Turn the scores (of base 2) of up to sixteen rows, in `tiles` tiles each, into weights, relative to the chunk's own
/// largest: they need not wait for the chunks before.
///
/// Raises the rows' maxima to the largest scores seen, adds the weights to the lanes of their sums, and
/// finds the factors with which the values are added. Rows are done together because each alone is a chain of a dozen
/// operations that wait for one another.
///
/// # Safety
/// At most `CHUNK / 16` tiles; `state` has the rows from `first` on; the level's instructions are enabled.
#[inline(always)]
pub(super) unsafe fn weigh<L: Lanes>(
    scores: &mut [[f32; CHUNK]],
    tiles: usize,
    state: &mut State,
    factors: &mut Factors,
    first: usize,
) {
    let rows = first..first + scores.len();
    let (mut before, mut largest) = ([NO_SCORE; LANES], [NO_SCORE; LANES]);
    before[..scores.len()].copy_from_slice(&state.max[rows.clone()]);
    // SAFETY: tiles of sixteen inside the chunk, sixteen lanes of everything else.
    unsafe {
        for (largest, scores) in largest.iter_mut().zip(scores.iter()) {
            let mut most = L::load(scores.as_ptr());
            for tile in 1..tiles {
                most = most.max(L::load(scores.as_ptr().add(tile * LANES)));
            }
            *largest = most.largest().max(NO_SCORE);
        }
        let (was, is) = (L::load(before.as_ptr()), L::load(largest.as_ptr()));
        let now = was.max(is);
        let (old, new) = (
            was.sub(now).exp2().to_array(),
            is.sub(now).exp2().to_array(),
        );
        factors.before[rows.clone()].copy_from_slice(&old[..scores.len()]);
        factors.chunk[rows.clone()].copy_from_slice(&new[..scores.len()]);
        state.max[rows].copy_from_slice(&now.to_array()[..scores.len()]);
        for (at, scores) in scores.iter_mut().enumerate() {
            let largest = L::splat(largest[at]);
            let mut sum = L::splat(0.0);
            for tile in 0..tiles {
                let at = scores.as_mut_ptr().add(tile * LANES);
                let weight = L::load(at).sub(largest).exp2();
                weight.store(at);
                sum = sum.add(weight);
            }
            let sums = state.sums_mut(first + at).as_mut_ptr();
            let before = L::load(sums).mul(L::splat(old[at]));
            sum.mul_add(L::splat(new[at]), before).store(sums);
        }
    }
}
