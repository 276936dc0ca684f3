//! Online softmax: one chunk's update of the running maxima, sums and scale factors.

use super::state::{NO_SCORE, State};
use super::{CHUNK, MAX_ROWS};
use crate::simd::{LANES, Lanes};

/// Factors that rescale rows' accumulators to the new running maximum when a chunk is added to the chunks before it.
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

/// The sum of two accumulators that are relative to different maxima: `x * x_factor + y * y_factor`, with one rounding
/// of the sum where the level has fused multiply-add.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(super) unsafe fn rescaled_sum<L: Lanes>((x, x_factor): (L, L), (y, y_factor): (L, L)) -> L {
    // SAFETY: the caller's promise.
    unsafe { x.mul_add(x_factor, y.mul(y_factor)) }
}

/// Turn the base-2 scores of up to sixteen rows, `tiles` tiles each, into attention probabilities, not yet normalized
/// and relative to the chunk's own maximum, so that they do not depend on the chunks before.
///
/// Raises the rows' running maxima, adds the probabilities to the lanes of their sums, and sets the factors for adding
/// the values. Rows are processed together because each alone is a chain of a dozen dependent operations.
///
/// # Safety
/// At most `CHUNK / 16` tiles; `state` has the rows from `first` on; the level's instructions are enabled.
#[inline(always)]
pub(super) unsafe fn softmax_chunk<L: Lanes>(
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
                let prob = L::load(at).sub(largest).exp2();
                prob.store(at);
                sum = sum.add(prob);
            }
            let sums = state.sums_mut(first + at).as_mut_ptr();
            let before = (L::load(sums), L::splat(old[at]));
            rescaled_sum((sum, L::splat(new[at])), before).store(sums);
        }
    }
}
