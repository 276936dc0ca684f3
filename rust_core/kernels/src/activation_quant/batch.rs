//! The arithmetic: sixteen groups at once, one a lane, wherever they come from and go.

use super::scale_mode::next_power_of_two;
use super::{NO_OUTLIER, OUTLIER_RATIO, ScaleMode};
use crate::pack::layout::GROUP;
use crate::pack::pairs;
use crate::simd::{LANES, Lanes};

/// Groups that are worked on at once.
pub(super) const BATCH: usize = LANES;

/// Up to sixteen groups, and what they become by [`Batch::compute_scales`] and [`Batch::round`] of every four, in this order;
/// where outliers are set apart by [`Batch::compute_scales_and_outliers`], and [`Batch::extract_outliers`] in the end.
#[repr(C, align(64))]
pub(super) struct Batch {
    pub values: [[f32; GROUP]; BATCH],
    /// The largest magnitude of each group.
    largest: [f32; BATCH],
    /// Bit by bit the groups that have an outlier.
    outlier_mask: u32,
    /// What values are multiplied with to become codes.
    factors: [f32; BATCH],
    pub codes: [[i8; GROUP]; BATCH],
    pub scales: [f32; BATCH],
    pub initial_sums: [i32; BATCH],
    pub low_sums: [i32; BATCH],
    /// The outlier of each group that has one.
    pub outliers: [f32; BATCH],
    /// Where in its group it stands, or [`NO_OUTLIER`].
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

    /// Find the scales of the first `count` groups; what becomes of the others means nothing.
    ///
    /// Each result waits for the one before, so that a caller does well to do something else before it rounds.
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

    /// The same, and find which groups have an outlier, which is no code: more than [`OUTLIER_RATIO`] times the next
    /// largest.
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

    /// Scale groups to the largest magnitudes `quantized_max`; the largest of all say which have no numbers.
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
            let most = L::splat(127.0);
            let factors = match scale_mode {
                ScaleMode::MaxAbs => {
                    quantized_max.div(most).store(self.scales.as_mut_ptr());
                    most.div(quantized_max)
                }
                ScaleMode::PowerOfTwo => {
                    let least = quantized_max.mul(L::splat(1.0 / 127.0)).to_array();
                    self.scales = least.map(next_power_of_two);
                    L::splat(1.0).div(L::load(self.scales.as_ptr()))
                }
            };
            // Up to here the inverse overflows; such a group is zero for every purpose.
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

    /// Round the four groups from `first` on to codes, of which an outlier's is zero, and sum these.
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

    /// Find where outliers stand. No processor foresees in which groups, and so late little work is thrown away for it.
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

/// Where in a group the value of magnitude `largest` stands, the first one of several.
#[inline(always)]
fn position_of(group: &[f32; GROUP], largest: f32) -> usize {
    let mut found = 0u32;
    for (at, x) in group.iter().enumerate() {
        found |= u32::from(x.abs() == largest) << at;
    }
    found.trailing_zeros() as usize
}
