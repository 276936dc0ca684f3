//! Activations as int8, one scale for each group of 32 inputs of a row.
//!
//! `x ≈ scale * code`, code in [-127, 127], rounded to nearest even. One scale a token would cost a
//! small model several percent of perplexity; one a group costs about a tenth of a percent. The sums
//! serve weights with an offset: `Σ (s·c + m)·x = s·Σ c·x + m·Σ x`. A row with a NaN or an infinity
//! gets a NaN scale in that group, so the row's results are NaN and nobody else's.

use crate::pack::layout::GROUP;
use crate::simd::{LANES, Lanes, ROUND, by_level};

/// What the kernels need of a group beside its codes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GroupMeta {
    pub scale: f32,
    /// `scale * sum`.
    pub scaled_sum: f32,
    /// Sum of the group's codes.
    pub sum: i32,
    /// Sum of the group's first 16 codes.
    pub low_sum: i32,
}

// SAFETY: plain numbers.
unsafe impl crate::arena::Plain for GroupMeta {}

/// Quantised rows: `[rows, inputs]` codes and `[rows, inputs / 32]` metas, both dense.
#[derive(Debug, Clone, Copy)]
pub struct QuantRows {
    pub codes: *const i8,
    pub metas: *const GroupMeta,
    pub inputs: usize,
}

impl QuantRows {
    /// The rows from `row` on.
    ///
    /// # Safety
    /// There are at least `row` rows.
    pub unsafe fn from_row(self, row: usize) -> Self {
        // SAFETY: within the arrays by contract.
        unsafe {
            Self {
                codes: self.codes.add(row * self.inputs),
                metas: self.metas.add(row * (self.inputs / GROUP)),
                inputs: self.inputs,
            }
        }
    }
}

#[inline(always)]
unsafe fn quantize_row_body<L: Lanes>(row: &[f32], codes: &mut [i8], metas: &mut [GroupMeta]) {
    assert_eq!((codes.len(), metas.len() * GROUP), (row.len(), row.len()));
    let groups = row
        .as_chunks::<GROUP>()
        .0
        .iter()
        .zip(codes.as_chunks_mut::<GROUP>().0);
    for ((row, codes), meta) in groups.zip(metas) {
        // Compared as integers, magnitudes order as floats do and NaN is above everything.
        let largest = row
            .iter()
            .fold(0u32, |max, x| max.max(x.to_bits() & 0x7fff_ffff));
        let largest = f32::from_bits(largest);
        if !largest.is_finite() {
            codes.fill(0);
            *meta = GroupMeta {
                scale: f32::NAN,
                scaled_sum: f32::NAN,
                sum: 0,
                low_sum: 0,
            };
            continue;
        }
        // Below this the inverse overflows; such a group is zero for every purpose.
        let inverse = if largest > 1e-30 {
            127.0 / largest
        } else {
            0.0
        };
        let mut rounded = [0f32; GROUP];
        // SAFETY: instructions by the caller's promise; 16 of 32 elements at 0 and 16.
        unsafe {
            let (inverse, round) = (L::splat(inverse), L::splat(ROUND));
            for half in [0, LANES] {
                // Not fused: the product is rounded first, as on every level.
                let scaled = L::load(row.as_ptr().add(half)).mul(inverse);
                scaled.add(round).store(rounded.as_mut_ptr().add(half));
            }
        }
        let values = rounded.map(|x| x.to_bits() as i8);
        let sum_of = |values: &[i8]| values.iter().map(|&code| i32::from(code)).sum::<i32>();
        let (low_sum, high_sum) = (sum_of(&values[..LANES]), sum_of(&values[LANES..]));
        let (scale, sum) = (largest / 127.0, low_sum + high_sum);
        *codes = values;
        *meta = GroupMeta {
            scale,
            scaled_sum: scale * sum as f32,
            sum,
            low_sum,
        };
    }
}

by_level! {
    /// Quantise one row: `codes` is as long as `row`, `metas` has one entry for each 32 of it.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn quantize_row(row: &[f32], codes: &mut [i8], metas: &mut [GroupMeta]) = quantize_row_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Level;
    use crate::pack::tests::Random;

    fn quantized(level: Level, row: &[f32]) -> (Vec<i8>, Vec<GroupMeta>) {
        let (mut codes, mut metas) = (
            vec![0; row.len()],
            vec![GroupMeta::default(); row.len() / GROUP],
        );
        // SAFETY: callers pass available levels.
        unsafe { quantize_row(level, row, &mut codes, &mut metas) };
        (codes, metas)
    }

    #[test]
    fn codes_are_within_half_a_step_and_levels_agree_bit_for_bit() {
        let mut random = Random(7);
        let row: Vec<f32> = (0..32 * 9)
            .map(|i| random.unit() * 10f32.powi(i / 32 - 4))
            .collect();
        let (codes, metas) = quantized(Level::Portable, &row);
        for (i, x) in row.iter().enumerate() {
            let meta = metas[i / GROUP];
            assert!((x - meta.scale * f32::from(codes[i])).abs() <= meta.scale * 0.50001);
        }
        for (group, meta) in metas.iter().enumerate() {
            let codes = &codes[group * GROUP..][..GROUP];
            assert_eq!(
                meta.sum,
                codes.iter().map(|&code| i32::from(code)).sum::<i32>()
            );
            assert_eq!(
                meta.low_sum,
                codes[..16].iter().map(|&code| i32::from(code)).sum::<i32>()
            );
        }
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            assert_eq!(
                quantized(level, &row),
                (codes.clone(), metas.clone()),
                "{level:?}"
            );
        }
    }

    #[test]
    fn zero_stays_zero_and_bad_numbers_poison_their_group_alone() {
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            let mut row = vec![0.0; 96];
            (row[40], row[70]) = (f32::NAN, f32::NEG_INFINITY);
            let (codes, metas) = quantized(level, &row);
            assert!(codes.iter().all(|&code| code == 0));
            assert_eq!(metas[0], GroupMeta::default());
            assert!(metas[1].scale.is_nan() && metas[2].scale.is_nan());
        }
    }
}
