//! Q4_1: 32 codes with an f16 scale and minimum.

use half::f16;

use super::Lane16;
use super::affine_fit::{self, GROUP};
use super::blocks::stored_scale;
use crate::dispatch::Level;
use crate::simd::{LANES, Lanes, by_level};

/// Quantise a block of sixteen rows; see [`super::blocks::quantize`].
pub(super) fn quantize<'a>(
    level: Level,
    values: &[Lane16; GROUP],
    finite: &[bool; LANES],
    blocks: impl Iterator<Item = &'a mut [u8]>,
) {
    // SAFETY: the level is one that this machine has (contract of `Level`).
    let (scales, mins, codes) = unsafe { fit(level, values) };
    for (lane, block) in blocks.enumerate() {
        let scale = stored_scale(scales[lane], finite[lane]);
        block[..2].copy_from_slice(&scale.to_le_bytes());
        block[2..4].copy_from_slice(&f16::from_f32(mins[lane]).to_le_bytes());
        let (low, high) = codes.split_at(GROUP / 2);
        for (byte, (low, high)) in block[4..].iter_mut().zip(low.iter().zip(high)) {
            *byte = low[lane] | high[lane] << 4;
        }
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn fit_body<L: Lanes>(values: &[Lane16; GROUP]) -> (Lane16, Lane16, [[u8; LANES]; GROUP]) {
    // SAFETY: the caller's promise.
    unsafe {
        let rounded = |numbers: Lane16| numbers.map(|number| f16::from_f32(number).to_f32());
        let (scale, min) = affine_fit::fit::<L, false>(values);
        let (scale, min) = (rounded(scale), rounded(min));
        (scale, min, affine_fit::codes::<L>(values, &scale, &min))
    }
}

by_level! {
    /// Scales and minima rounded to f16, and the codes for them.
    ///
    /// # Safety
    /// The machine has the level.
    unsafe fn fit(values: &[Lane16; GROUP]) -> (Lane16, Lane16, [[u8; LANES]; GROUP]) = fit_body;
}
