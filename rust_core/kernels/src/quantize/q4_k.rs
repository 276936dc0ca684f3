//! Q4_K: eight groups of 32 codes; their scales and minima are 6-bit multiples of two f16 factors.

use half::f16;

use super::Lane16;
use super::affine_fit::{self, GROUP};
use super::blocks::{inverse, stored_scale};
use crate::dispatch::Level;
use crate::simd::{LANES, Lanes, by_level};

pub(super) const LEN: usize = GROUPS * GROUP;
const GROUPS: usize = 8;

/// The largest integer of a scale or minimum.
const MAX_INTEGER: f32 = 63.0;

/// Sixteen blocks before they are stored.
struct Blocks {
    scale_factors: [f16; LANES],
    min_factors: [f16; LANES],
    /// Integers of each group's scales and minima.
    scales: [[u8; LANES]; GROUPS],
    mins: [[u8; LANES]; GROUPS],
    codes: [[[u8; LANES]; GROUP]; GROUPS],
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
        let scale = stored_scale(found.scale_factors[lane].to_f32(), finite[lane]);
        block[..2].copy_from_slice(&scale.to_le_bytes());
        block[2..4].copy_from_slice(&found.min_factors[lane].to_le_bytes());
        store_integers(
            &found.scales.map(|scales| scales[lane]),
            &found.mins.map(|mins| mins[lane]),
            &mut block[4..16],
        );
        for (pair, run) in block[16..].chunks_exact_mut(GROUP).enumerate() {
            let (low, high) = (&found.codes[2 * pair], &found.codes[2 * pair + 1]);
            for (byte, (low, high)) in run.iter_mut().zip(low.iter().zip(high)) {
                *byte = low[lane] | high[lane] << 4;
            }
        }
    }
}

/// Store 6-bit scales and minima in twelve bytes; see `quant/six_bit_scales.rs`.
fn store_integers(scales: &[u8; GROUPS], mins: &[u8; GROUPS], packed: &mut [u8]) {
    for group in 0..4 {
        packed[group] = scales[group] | (scales[group + 4] >> 4) << 6;
        packed[group + 4] = mins[group] | (mins[group + 4] >> 4) << 6;
        packed[group + 8] = scales[group + 4] & 15 | (mins[group + 4] & 15) << 4;
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn fit_body<L: Lanes>(values: &[Lane16; LEN]) -> Blocks {
    let groups = values.as_chunks::<GROUP>().0;
    let (mut scales, mut mins) = ([[0.0; LANES]; GROUPS], [[0.0; LANES]; GROUPS]);
    for (at, group) in groups.iter().enumerate() {
        // SAFETY: the caller's promise.
        let (scale, min) = unsafe { affine_fit::fit::<L, true>(group) };
        (scales[at], mins[at]) = (scale, min.map(|min| -min));
    }
    let (scale_factors, min_factors) = (factors(&scales), factors(&mins));
    let mut blocks = Blocks {
        scale_factors,
        min_factors,
        scales: [[0; LANES]; GROUPS],
        mins: [[0; LANES]; GROUPS],
        codes: [[[0; LANES]; GROUP]; GROUPS],
    };
    for (at, group) in groups.iter().enumerate() {
        let start = [
            integers(&scales[at], &scale_factors),
            integers(&mins[at], &min_factors),
        ];
        // SAFETY: the caller's promise.
        unsafe {
            let [scale, min] = refine::<L>(group, start, &scale_factors, &min_factors);
            let (exact_scale, exact_min) = exact(&scale, &min, &scale_factors, &min_factors);
            blocks.codes[at] = affine_fit::codes::<L>(group, &exact_scale, &exact_min);
            blocks.scales[at] = scale.map(|integer| integer as u8);
            blocks.mins[at] = min.map(|integer| integer as u8);
        }
    }
    blocks
}

by_level! {
    /// # Safety
    /// The machine has the level.
    unsafe fn fit(values: &[Lane16; LEN]) -> Blocks = fit_body;
}

/// The factor of each lane, such that the largest of its numbers becomes the largest integer.
fn factors(numbers: &[Lane16; GROUPS]) -> [f16; LANES] {
    std::array::from_fn(|lane| {
        let largest = numbers
            .iter()
            .fold(0f32, |most, group| most.max(group[lane]));
        f16::from_f32(largest / MAX_INTEGER)
    })
}

/// The nearest integers of a group's numbers.
fn integers(numbers: &Lane16, factors: &[f16; LANES]) -> Lane16 {
    std::array::from_fn(|lane| {
        let integer = numbers[lane] * inverse(factors[lane].to_f32());
        integer.round_ties_even().clamp(0.0, MAX_INTEGER)
    })
}

/// Scale and minimum of a group with these integers.
fn exact(
    scale: &Lane16,
    min: &Lane16,
    scale_factors: &[f16; LANES],
    min_factors: &[f16; LANES],
) -> (Lane16, Lane16) {
    (
        std::array::from_fn(|lane| scale_factors[lane].to_f32() * scale[lane]),
        std::array::from_fn(|lane| -(min_factors[lane].to_f32() * min[lane])),
    )
}

/// The integers next to those given with the least squared error: rounded one by one, scale and minimum may add up.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn refine<L: Lanes>(
    values: &[Lane16; GROUP],
    start: [Lane16; 2],
    scale_factors: &[f16; LANES],
    min_factors: &[f16; LANES],
) -> [Lane16; 2] {
    let near = |integers: &Lane16, by: f32| integers.map(|i| (i + by).clamp(0.0, MAX_INTEGER));
    let (mut best, mut least) = (start, [f32::INFINITY; LANES]);
    for scale_step in [0.0, -1.0, 1.0] {
        for min_step in [0.0, -1.0, 1.0] {
            let (scale, min) = (near(&start[0], scale_step), near(&start[1], min_step));
            let (exact_scale, exact_min) = exact(&scale, &min, scale_factors, min_factors);
            // SAFETY: the caller's promise.
            let error = unsafe { affine_fit::error::<L>(values, &exact_scale, &exact_min) };
            for lane in 0..LANES {
                if error[lane] < least[lane] {
                    least[lane] = error[lane];
                    (best[0][lane], best[1][lane]) = (scale[lane], min[lane]);
                }
            }
        }
    }
    best
}
