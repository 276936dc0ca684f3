//! Q6_K: sixteen groups of 16 codes; their scales are 8-bit multiples of an f16 factor.

use half::f16;

use super::Lane16;
use super::blocks::{inverse, stored_scale};
use super::symmetric_fit::{self, GROUP, MIN_CODE};
use crate::dispatch::Level;
use crate::simd::{LANES, Lanes, by_level};

pub(super) const LEN: usize = GROUPS * GROUP;
const GROUPS: usize = 16;

/// The largest magnitude of a scale's integer; it has the opposite sign of the scale.
const MAX_INTEGER: f32 = 128.0;

/// Sixteen blocks before they are stored.
struct Blocks {
    factors: [f16; LANES],
    scales: [[i8; LANES]; GROUPS],
    /// From 0 to 63.
    codes: [[u8; LANES]; LEN],
}

/// Quantise a block of sixteen rows; see [`super::blocks::quantize`].
pub(super) fn quantize<'a>(
    level: Level,
    values: &[Lane16; LEN],
    finite: &[bool; LANES],
    blocks: impl Iterator<Item = &'a mut [u8]>,
) {
    // SAFETY: the level is one that this machine has (contract of `Level`).
    let found = unsafe { fit(level, values) };
    for (lane, block) in blocks.enumerate() {
        let (low, rest) = block.split_at_mut(LEN / 2);
        let (high, scales) = rest.split_at_mut(LEN / 4);
        // See `quant/q6_k.rs`.
        for (half, codes) in found.codes.as_chunks::<128>().0.iter().enumerate() {
            let code = |quarter: usize, at: usize| codes[32 * quarter + at][lane];
            for at in 0..32 {
                for nibble in 0..2 {
                    low[64 * half + 32 * nibble + at] =
                        code(nibble, at) & 15 | (code(nibble + 2, at) & 15) << 4;
                }
                high[32 * half + at] = (0..4).fold(0, |byte, quarter| {
                    byte | code(quarter, at) >> 4 << (2 * quarter)
                });
            }
        }
        for (byte, scale) in scales.iter_mut().zip(&found.scales) {
            *byte = scale[lane].cast_unsigned();
        }
        let factor = stored_scale(found.factors[lane].to_f32(), finite[lane]);
        scales[GROUPS..].copy_from_slice(&factor.to_le_bytes());
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn fit_body<L: Lanes>(values: &[Lane16; LEN]) -> Blocks {
    let groups = values.as_chunks::<GROUP>().0;
    let mut fitted = [[0.0; LANES]; GROUPS];
    // A loop, because a closure would not be compiled with the level's instructions.
    for (group, scales) in groups.iter().zip(&mut fitted) {
        // SAFETY: the caller's promise.
        *scales = unsafe { symmetric_fit::fit::<L>(group) };
    }
    let factors: [f16; LANES] = std::array::from_fn(|lane| {
        let larger = |most: f32, scale: f32| {
            if scale.abs() > most.abs() {
                scale
            } else {
                most
            }
        };
        let largest = fitted
            .iter()
            .fold(0f32, |most, scales| larger(most, scales[lane]));
        f16::from_f32(-largest / MAX_INTEGER)
    });
    let mut blocks = Blocks {
        factors,
        scales: [[0; LANES]; GROUPS],
        codes: [[0; LANES]; LEN],
    };
    for (at, group) in groups.iter().enumerate() {
        let scales = std::array::from_fn(|lane| {
            let integer = fitted[at][lane] * inverse(factors[lane].to_f32());
            // From -128 to 127 by the cast.
            integer.round_ties_even() as i8
        });
        let factor: Lane16 =
            std::array::from_fn(|lane| inverse(factors[lane].to_f32() * f32::from(scales[lane])));
        let codes = &mut blocks.codes[GROUP * at..][..GROUP];
        for (value, codes) in group.iter().zip(codes) {
            // SAFETY: arrays of sixteen; the instructions are the caller's promise.
            let rounded = unsafe {
                let x = L::load(value.as_ptr()).mul(L::load(factor.as_ptr()));
                symmetric_fit::round_clamped(x).to_array()
            };
            *codes = rounded.map(|code| (code - MIN_CODE) as u8);
        }
        blocks.scales[at] = scales;
    }
    blocks
}

by_level! {
    /// # Safety
    /// The machine has the level.
    unsafe fn fit(values: &[Lane16; LEN]) -> Blocks = fit_body;
}
