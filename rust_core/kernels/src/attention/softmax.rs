//! The running softmax of some rows, one chunk further.

use super::CHUNK;
use super::state::State;
use crate::simd::{LANES, Lanes};

/// Turn the scores (of base 2) of up to sixteen rows, in `tiles` tiles each, into weights.
///
/// Raises the rows' maxima to the largest scores seen, adds the weights to the lanes of their sums, and
/// returns for each the factor of everything that was summed before. Rows are done together because each
/// alone is a chain of a dozen operations that wait for one another.
///
/// # Safety
/// At most `CHUNK / 16` tiles; `state` has the rows from `first` on; the level's instructions are enabled.
#[inline(always)]
pub(super) unsafe fn weigh<L: Lanes>(
    scores: &mut [[f32; CHUNK]],
    tiles: usize,
    state: &mut State,
    first: usize,
) -> [f32; LANES] {
    let (mut before, mut after) = ([0.0; LANES], [0.0; LANES]);
    let mut factors;
    // SAFETY: tiles of sixteen inside the chunk, sixteen lanes of everything else.
    unsafe {
        for (at, scores) in scores.iter().enumerate() {
            let mut largest = L::load(scores.as_ptr());
            for tile in 1..tiles {
                largest = largest.max(L::load(scores.as_ptr().add(tile * LANES)));
            }
            let largest = largest.largest();
            before[at] = state.max[first + at];
            after[at] = if largest > before[at] {
                largest
            } else {
                before[at]
            };
        }
        factors = L::load(before.as_ptr())
            .sub(L::load(after.as_ptr()))
            .exp2()
            .to_array();
        for (at, scores) in scores.iter_mut().enumerate() {
            // What has seen nothing is zero, and stays so whatever it is multiplied with.
            if before[at] == after[at] || before[at] == f32::NEG_INFINITY {
                factors[at] = 1.0;
            }
            // Nothing visible so far: every score is -inf, and 2^(-inf - 0) makes the weights zero.
            let shift = L::splat(if after[at] == f32::NEG_INFINITY {
                0.0
            } else {
                after[at]
            });
            state.max[first + at] = after[at];
            let sums = state.sums_mut(first + at);
            let mut sum = L::load(sums.as_ptr()).mul(L::splat(factors[at]));
            for tile in 0..tiles {
                let at = scores.as_mut_ptr().add(tile * LANES);
                let weight = L::load(at).sub(shift).exp2();
                weight.store(at);
                sum = sum.add(weight);
            }
            sum.store(sums.as_mut_ptr());
        }
    }
    factors
}
