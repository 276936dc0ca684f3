//! Q8_0: the largest magnitude of a group becomes code 127.

use super::Lane16;
use super::blocks::{inverse, stored_scale};
use crate::dispatch::Level;
use crate::simd::{LANES, Lanes, ROUND, by_level};

pub(super) const LEN: usize = 32;

const MAX_CODE: f32 = 127.0;

/// Quantise a block of sixteen rows; see [`super::blocks::quantize`].
pub(super) fn quantize<'a>(
    level: Level,
    values: &[Lane16; LEN],
    finite: &[bool; LANES],
    blocks: impl Iterator<Item = &'a mut [u8]>,
) {
    // SAFETY: the level is one that this machine has (contract of `Level`).
    let largest = unsafe { largest(level, values) };
    let scales: [_; LANES] =
        std::array::from_fn(|lane| stored_scale(largest[lane] / MAX_CODE, finite[lane]));
    let factors = scales.map(|scale| inverse(scale.to_f32()));
    // SAFETY: as above.
    let codes = unsafe { codes(level, values, &factors) };
    for (lane, block) in blocks.enumerate() {
        block[..2].copy_from_slice(&scales[lane].to_le_bytes());
        for (byte, codes) in block[2..].iter_mut().zip(&codes) {
            *byte = codes[lane].cast_unsigned();
        }
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn largest_body<L: Lanes>(values: &[Lane16; LEN]) -> Lane16 {
    // SAFETY: arrays of sixteen; the instructions are the caller's promise.
    unsafe {
        let zero = L::splat(0.0);
        let mut largest = zero;
        for value in values {
            let x = L::load(value.as_ptr());
            let magnitude = x.max(zero.sub(x));
            largest = largest.select_less(magnitude, magnitude, largest);
        }
        largest.to_array()
    }
}

by_level! {
    /// The largest magnitude of each lane.
    ///
    /// # Safety
    /// The machine has the level.
    unsafe fn largest(values: &[Lane16; LEN]) -> Lane16 = largest_body;
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn codes_body<L: Lanes>(
    values: &[Lane16; LEN],
    factors: &[f32; LANES],
) -> [[i8; LANES]; LEN] {
    // SAFETY: arrays of sixteen; the instructions are the caller's promise.
    unsafe {
        let (factor, round) = (L::load(factors.as_ptr()), L::splat(ROUND));
        let mut codes = [[0; LANES]; LEN];
        for (value, codes) in values.iter().zip(&mut codes) {
            let x = L::load(value.as_ptr()).mul(factor).clamp(MAX_CODE);
            *codes = x.add(round).sub(round).to_array().map(|code| code as i8);
        }
        codes
    }
}

by_level! {
    /// # Safety
    /// The machine has the level.
    unsafe fn codes(values: &[Lane16; LEN], factors: &[f32; LANES]) -> [[i8; LANES]; LEN] = codes_body;
}
