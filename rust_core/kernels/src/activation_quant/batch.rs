//! Quantisation of sixteen groups at once, one per lane.

use super::scale_mode::next_power_of_two;
use super::{NO_OUTLIER, OUTLIER_RATIO, ScaleMode};
use crate::pack::layout::GROUP;
use crate::pack::pairs;
use crate::simd::{LANES, Lanes};

/// Groups quantised at once.
pub(super) const BATCH: usize = LANES;

/// Up to sixteen groups and their quantised form. Call in this order: [`Batch::compute_scales`] (or
/// [`Batch::compute_scales_and_outliers`]), [`Batch::round`] for every four groups, and [`Batch::extract_outliers`] if outliers
/// are kept.
#[repr(C, align(64))]
pub(super) struct Batch {
    pub values: [[f32; GROUP]; BATCH],
    /// The largest magnitude of each group.
    largest: [f32; BATCH],
    /// Bit mask of the groups that have an outlier.
    outlier_mask: u32,
    /// Inverse scales: values times these are rounded to codes.
    factors: [f32; BATCH],
    pub codes: [[i8; GROUP]; BATCH],
    pub scales: [f32; BATCH],
    pub initial_sums: [i32; BATCH],
    pub low_sums: [i32; BATCH],
    /// The outlier of each group, 0 without one.
    pub outliers: [f32; BATCH],
    /// Index of the outlier within its group, or [`NO_OUTLIER`].
    pub outlier_positions: [u8; BATCH],
}

impl Batch {
    pub fn new() -> Self {
        Self {
            values: [[0.0; GROUP]; BATCH],
            largest: [0.0; BATCH],
            outlier_mask: 0,
            factors: [0.0; BATCH],
            codes: [[0; GROUP]; BATCH],
            scales: [0.0; BATCH],
            initial_sums: [0; BATCH],
            low_sums: [0; BATCH],
            outliers: [0.0; BATCH],
            outlier_positions: [NO_OUTLIER; BATCH],
        }
    }

    /// Compute the scales of the first `count` groups; other lanes are unspecified.
    ///
    /// This is one long dependency chain: callers should interleave other work before [`Batch::round`].
    ///
    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    pub unsafe fn compute_scales<L: Lanes>(&mut self, scale_mode: ScaleMode, count: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let [largest] = L::largest_of_groups(&self.values, count);
            self.set_scales(scale_mode, largest, largest, count);
        }
    }

    /// The same, excluding outliers: a value more than [`OUTLIER_RATIO`] times the next largest of its group is not quantised.
    ///
    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    pub unsafe fn compute_scales_and_outliers<L: Lanes>(
        &mut self,
        scale_mode: ScaleMode,
        count: usize,
    ) {
        let first = u32::MAX >> (32 - count);
        // SAFETY: an array of sixteen; instructions by the caller's promise.
        unsafe {
            let [largest, next] = L::largest_of_groups(&self.values, count);
            largest.store(self.largest.as_mut_ptr());
            let limit = next.mul(L::splat(OUTLIER_RATIO));
            let finite = largest.mask_less(L::splat(f32::INFINITY));
            self.outlier_mask = limit.mask_less(largest) & finite & first;
            let quantized_max = limit.select_less(largest, next, largest);
            self.set_scales(scale_mode, largest, quantized_max, count);
        }
    }

    /// Set scales from the largest quantised magnitudes `quantized_max`. Groups whose `largest` is not finite get a NaN scale.
    ///
    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn set_scales<L: Lanes>(
        &mut self,
        scale_mode: ScaleMode,
        largest: L,
        quantized_max: L,
        count: usize,
    ) {
        let first = u32::MAX >> (32 - count);
        // SAFETY: arrays of sixteen; instructions by the caller's promise.
        let bad = unsafe {
            let max_code = L::splat(127.0);
            let factors = match scale_mode {
                ScaleMode::MaxAbs => {
                    quantized_max.div(max_code).store(self.scales.as_mut_ptr());
                    max_code.div(quantized_max)
                }
                ScaleMode::PowerOfTwo => {
                    let least = quantized_max.mul(L::splat(1.0 / 127.0)).to_array();
                    self.scales = least.map(next_power_of_two);
                    L::splat(1.0).div(L::load(self.scales.as_ptr()))
                }
            };
            // Below this, the inverse would overflow; such a group is quantised to zeros.
            L::splat(1e-30)
                .select_less(quantized_max, factors, L::splat(0.0))
                .store(self.factors.as_mut_ptr());
            !largest.mask_less(L::splat(f32::INFINITY)) & first
        };
        if bad != 0 {
            for at in (0..BATCH).filter(|at| bad >> at & 1 == 1) {
                (self.scales[at], self.factors[at]) = (f32::NAN, 0.0);
            }
        }
    }

    /// Round groups `first..first + 4` to codes, 0 for outliers, and compute the sums of codes.
    ///
    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    pub unsafe fn round<L: Lanes>(&mut self, first: usize) {
        let four = first / 4;
        let values = &self.values.as_chunks().0[four];
        let factors = &self.factors.as_chunks().0[four];
        let codes = &mut self.codes.as_chunks_mut().0[four];
        let low = &mut self.low_sums.as_chunks_mut().0[four];
        let mut high = [0; 4];
        // SAFETY: instructions by the caller's promise.
        unsafe { L::round_four_groups(values, factors, codes, low, &mut high) };
        for (i, start) in self.initial_sums.as_chunks_mut::<4>().0[four]
            .iter_mut()
            .enumerate()
        {
            *start = pairs::initial_sum(low[i] + high[i]);
        }
    }

    /// Locate the outliers of groups that have one. Done last, because its unpredictable branches then discard little
    /// speculative work.
    #[inline(always)]
    pub fn extract_outliers(&mut self) {
        (self.outlier_positions, self.outliers) = ([NO_OUTLIER; BATCH], [0.0; BATCH]);
        let mut left = self.outlier_mask;
        while left != 0 {
            let at = left.trailing_zeros() as usize % BATCH;
            left &= left - 1;
            let position = position_of(&self.values[at], self.largest[at]) % GROUP;
            self.outlier_positions[at] = position as u8;
            self.outliers[at] = self.values[at][position];
        }
    }
}

/// Index of the first value of magnitude `largest` in a group.
#[inline(always)]
fn position_of(group: &[f32; GROUP], largest: f32) -> usize {
    let mut found = 0u32;
    for (at, x) in group.iter().enumerate() {
        found |= u32::from(x.abs() == largest) << at;
    }
    found.trailing_zeros() as usize
}
