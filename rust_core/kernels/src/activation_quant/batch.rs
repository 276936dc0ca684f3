//! The arithmetic: sixteen groups at once, one a lane, wherever they come from and go.

use super::{NOWHERE, OUTLIER_RATIO};
use crate::pack::layout::GROUP;
use crate::simd::{LANES, Lanes};

/// Groups that are worked on at once.
pub(super) const BATCH: usize = LANES;

/// Up to sixteen groups, and what they become.
#[repr(C, align(64))]
pub(super) struct Batch {
    /// The groups; changed by [`Batch::quantize`].
    pub values: [[f32; GROUP]; BATCH],
    pub codes: [[i8; GROUP]; BATCH],
    pub scales: [f32; BATCH],
    pub scaled_sums: [f32; BATCH],
    pub low_scaled_sums: [f32; BATCH],
    /// The outlier of each group that has one.
    pub outliers: [f32; BATCH],
    /// Where in its group it stands, or [`NOWHERE`].
    pub places: [u8; BATCH],
}

impl Batch {
    pub fn new() -> Self {
        Self {
            values: [[0.0; GROUP]; BATCH],
            codes: [[0; GROUP]; BATCH],
            scales: [0.0; BATCH],
            scaled_sums: [0.0; BATCH],
            low_scaled_sums: [0.0; BATCH],
            outliers: [0.0; BATCH],
            places: [NOWHERE; BATCH],
        }
    }

    /// Quantise the first `count` groups; what becomes of the others means nothing.
    ///
    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    pub unsafe fn quantize<L: Lanes>(&mut self, count: usize) {
        let (mut largest, mut next) = ([0.0; BATCH], [0.0; BATCH]);
        let values = &mut self.values[..count];
        // SAFETY: instructions by the caller's promise.
        unsafe { L::two_largest_of_groups(values, &mut largest, &mut next) };
        let (mut bad, mut odd) = (0u32, 0u32);
        for at in 0..BATCH {
            let ordinary = largest[at] <= OUTLIER_RATIO * next[at] && next[at] < f32::INFINITY;
            odd |= u32::from(!ordinary) << at;
        }
        odd &= u32::MAX >> (32 - count);
        (self.places, self.outliers) = ([NOWHERE; BATCH], [0.0; BATCH]);
        while odd != 0 {
            let at = odd.trailing_zeros() as usize;
            odd &= odd - 1;
            let group = &mut values[at];
            if largest[at].is_finite() {
                let place = place_of(group, largest[at]);
                self.places[at] = place as u8;
                self.outliers[at] = group[place];
                group[place] = 0.0;
                largest[at] = next[at];
            } else {
                bad |= 1 << at;
                group.fill(0.0);
                largest[at] = 0.0;
            }
        }
        let (mut factors, mut low_sums, mut high_sums) = ([0.0; BATCH], [0; BATCH], [0; BATCH]);
        // SAFETY: instructions by the caller's promise; 32 bytes of codes a group, one after another.
        unsafe {
            scales_of::<L>(&largest, &mut self.scales, &mut factors);
            let codes = self.codes.as_mut_ptr().cast();
            L::store_groups(
                values,
                &factors,
                codes,
                GROUP,
                &mut low_sums,
                &mut high_sums,
            );
        }
        if bad != 0 {
            for (at, scale) in self.scales.iter_mut().enumerate() {
                if bad >> at & 1 == 1 {
                    *scale = f32::NAN;
                }
            }
        }
        for at in 0..BATCH {
            let scale = self.scales[at];
            self.scaled_sums[at] = scale * (low_sums[at] + high_sums[at]) as f32;
            self.low_scaled_sums[at] = scale * low_sums[at] as f32;
        }
    }
}

/// Where in a group the value of magnitude `largest` stands, the first one of several.
#[inline(always)]
fn place_of(group: &[f32; GROUP], largest: f32) -> usize {
    let mut found = 0u32;
    for (at, x) in group.iter().enumerate() {
        found |= u32::from(x.abs() == largest) << at;
    }
    found.trailing_zeros() as usize
}

/// Scales and the factors to codes of sixteen groups whose largest magnitude among codes is given.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn scales_of<L: Lanes>(
    largest: &[f32; BATCH],
    scales: &mut [f32; BATCH],
    factors: &mut [f32; BATCH],
) {
    // SAFETY: arrays of sixteen; instructions by the caller's promise.
    unsafe {
        let (largest, most) = (L::load(largest.as_ptr()), L::splat(127.0));
        largest.div(most).store(scales.as_mut_ptr());
        // Up to here the inverse overflows; such a group is zero for every purpose.
        L::splat(1e-30)
            .select_less(largest, most.div(largest), L::splat(0.0))
            .store(factors.as_mut_ptr());
    }
}
