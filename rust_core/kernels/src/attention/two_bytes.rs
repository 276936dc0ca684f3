//! Rows of floats as integers of two signed bytes, `x ≈ step * (256 * high + low)`: what codes are multiplied with.
//!
//! Fifteen bits are enough that nothing is lost beside the codes' own rounding, and an attention weight of a
//! thousandth next to one of 1 keeps a share of its digits.

use super::MAX_ROWS;
use super::state::Aligned;
use crate::simd::{ByteDots, CODES, LANES};

/// Up to [`MAX_ROWS`] rows of up to `N / MAX_ROWS` numbers, which begin whole registers of [`CODES`] bytes apart.
#[derive(Debug)]
pub(super) struct TwoBytes<const N: usize> {
    high: Box<Aligned<[i8; N]>>,
    low: Box<Aligned<[i8; N]>>,
    /// What one stands for, row by row, as whoever makes the numbers says.
    pub steps: [f32; MAX_ROWS],
    /// Sums of each row's integers.
    pub sums: [i32; MAX_ROWS],
}

impl<const N: usize> TwoBytes<N> {
    pub fn new() -> Self {
        Self {
            high: Box::new(Aligned([0; N])),
            low: Box::new(Aligned([0; N])),
            steps: [0.0; MAX_ROWS],
            sums: [0; MAX_ROWS],
        }
    }

    /// The high and the low bytes, from number `at` on.
    #[inline(always)]
    pub fn from(&self, at: usize) -> [*const i8; 2] {
        [self.high.0[at..].as_ptr(), self.low.0[at..].as_ptr()]
    }

    /// Make the products of `values` and `factors`, which repeat every [`CODES`], rounded, the numbers of row `row`, which
    /// begin at number `at`.
    ///
    /// # Safety
    /// No product is larger than [`LARGEST_TWO_BYTES`](crate::simd::LARGEST_TWO_BYTES); the level's instructions are enabled.
    #[inline(always)]
    pub unsafe fn set<L: ByteDots>(
        &mut self,
        row: usize,
        at: usize,
        values: &[[f32; LANES]],
        factors: &[[f32; LANES]; CODES / LANES],
    ) {
        let mut sum = 0;
        for (number, values) in values.chunks(factors.len()).enumerate() {
            let at = at + number * CODES;
            let high = &mut self.high.0[at..][..CODES];
            let low = &mut self.low.0[at..][..CODES];
            // SAFETY: as many bytes as the slices have; the rest is the caller's promise.
            sum +=
                unsafe { L::store_two_bytes(values, factors, high.as_mut_ptr(), low.as_mut_ptr()) };
        }
        self.sums[row] = sum;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dispatch::Level;
    use crate::simd::{LARGEST_TWO_BYTES, by_level, step_of};

    const COUNT: usize = 64;
    type Rows = TwoBytes<{ MAX_ROWS * COUNT }>;

    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn set_body<L: ByteDots>(rows: &mut Rows, row: usize, values: &[f32]) {
        // SAFETY: by_level enables the instructions.
        unsafe {
            let (step, inverse) = step_of::<L>(values, LARGEST_TWO_BYTES);
            rows.steps[row] = step;
            let inverse = [[inverse; LANES]; CODES / LANES];
            rows.set::<L>(row, row * COUNT, values.as_chunks().0, &inverse);
        }
    }

    by_level! {
        /// # Safety
        /// The machine has the level.
        unsafe fn set(rows: &mut Rows, row: usize, values: &[f32]) = set_body;
    }

    proptest! {
        #[test]
        fn rows_are_within_half_a_step(
            values in prop::array::uniform32(-1f32..1.0),
            scale in prop::sample::select(vec![0f32, 1e-33, 1e-6, 1.0, 1e30]),
            bad in prop::option::of(prop::sample::select(vec![f32::NAN, f32::INFINITY])),
        ) {
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                let mut rows = Rows::new();
                let mut values = values.map(|x| x * scale);
                if let Some(bad) = bad {
                    values[7] = bad;
                }
                // SAFETY: the level is available.
                unsafe { set(level, &mut rows, 3, &values) };
                let step = rows.steps[3];
                if bad.is_some() {
                    prop_assert!(step.is_nan());
                    continue;
                }
                let mut sum = 0;
                for (i, x) in values.into_iter().enumerate() {
                    let at = 3 * COUNT + i;
                    let number = 256 * i32::from(rows.high.0[at]) + i32::from(rows.low.0[at]);
                    sum += number;
                    let error = (x - step * number as f32).abs();
                    prop_assert!(error <= step * 0.51 || x.abs() < 1e-30, "{:?}: {} {}", level, x, error);
                }
                prop_assert_eq!(rows.sums[3], sum);
            }
        }
    }
}
