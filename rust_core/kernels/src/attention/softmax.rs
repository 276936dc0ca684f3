//! The running softmax of one row, one chunk further.

use super::CHUNK;
use crate::simd::{LANES, Lanes};

/// Turn a row's scores (of base 2) of `tiles` tiles into weights.
///
/// Raises `max` to the largest score seen, adds the weights to the lanes of `sums`, and returns the factor
/// for everything that was summed before.
///
/// # Safety
/// At most `CHUNK / 16` tiles; the level's instructions are enabled.
#[inline(always)]
pub(super) unsafe fn weigh<L: Lanes>(
    scores: &mut [f32; CHUNK],
    tiles: usize,
    max: &mut f32,
    sums: &mut [f32; LANES],
) -> f32 {
    // SAFETY: tiles of sixteen inside the chunk.
    unsafe {
        let mut largest = L::load(scores.as_ptr());
        for tile in 1..tiles {
            largest = largest.max(L::load(scores.as_ptr().add(tile * LANES)));
        }
        let largest = largest.largest();
        let before = *max;
        let after = if largest > before { largest } else { before };
        *max = after;
        // Nothing visible so far: every score is -inf, and 2^(-inf - 0) makes the weights zero.
        let shift = L::splat(if after == f32::NEG_INFINITY {
            0.0
        } else {
            after
        });
        let factor = if before == after {
            1.0
        } else {
            L::splat(before - after).exp2().to_array()[0]
        };
        let mut sum = L::load(sums.as_ptr()).mul(L::splat(factor));
        for tile in 0..tiles {
            let at = scores.as_mut_ptr().add(tile * LANES);
            let weight = L::load(at).sub(shift).exp2();
            weight.store(at);
            sum = sum.add(weight);
        }
        sum.store(sums.as_mut_ptr());
        factor
    }
}
