//! One block of sixteen rows, by type.

use super::{Lane16, q4_1, q4_k, q6_k, q8_0};
use crate::dispatch::Level;
use crate::quant::DType;
use crate::simd::LANES;

/// Quantise `values`, one block of sixteen rows, and store the blocks of the rows that there are.
///
/// # Panics
/// If `values` is not one block of `target`, or weights are never quantised to it.
pub(super) fn quantize<'a>(
    level: Level,
    target: DType,
    values: &[Lane16],
    blocks: impl Iterator<Item = &'a mut [u8]>,
) {
    // Minima are stored in f16. False for NaN, too.
    let largest = half::f16::MAX.to_f32();
    let finite: [bool; LANES] =
        std::array::from_fn(|lane| values.iter().all(|value| value[lane].abs() <= largest));
    match target {
        DType::Q8_0 => q8_0::quantize(level, whole(values), &finite, blocks),
        DType::Q4_1 => q4_1::quantize(level, whole(values), &finite, blocks),
        DType::Q4K => q4_k::quantize(level, whole(values), &finite, blocks),
        DType::Q6K => q6_k::quantize(level, whole(values), &finite, blocks),
        _ => panic!("weights are not quantised to {}", target.name()),
    }
}

fn whole<const LEN: usize>(values: &[Lane16]) -> &[Lane16; LEN] {
    values.try_into().expect("one block")
}

/// A scale as stored; NaN if it is infinite or `finite` is false.
pub(super) fn stored_scale(scale: f32, finite: bool) -> half::f16 {
    let stored = half::f16::from_f32(scale);
    if finite && stored.is_finite() {
        stored
    } else {
        half::f16::NAN
    }
}

/// `1 / number`, or 0 where that is not finite.
pub(super) fn inverse(number: f32) -> f32 {
    let inverse = 1.0 / number;
    if inverse.is_finite() { inverse } else { 0.0 }
}
