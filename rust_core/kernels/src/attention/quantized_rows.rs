//! Rows of floats quantized to integers of one or two signed bytes, the operands of int8 dot products.
//!
//! A query is Hadamard-rotated like the keys, so one byte costs it no more precision than a key loses. An attention
//! probability takes two, `256 * high + low`, so that one of 0.001 beside one of 1 keeps some of its digits.

use super::MAX_ROWS;
use super::state::Aligned;
use crate::simd::{Int8Dot, LANES, REGISTER_CODES};

/// Up to [`MAX_ROWS`] rows of up to `N / MAX_ROWS` integers of `BYTES` bytes, the highest byte first.
#[derive(Debug)]
pub(super) struct QuantizedRows<const BYTES: usize, const N: usize> {
    bytes: [Box<Aligned<[i8; N]>>; BYTES],
    /// Scale of each row: the float that the integer 1 stands for. Set by the caller of `set`.
    pub scales: [f32; MAX_ROWS],
    /// Sums of each row's integers.
    pub sums: [i32; MAX_ROWS],
}

impl<const BYTES: usize, const N: usize> QuantizedRows<BYTES, N> {
    pub fn new() -> Self {
        Self {
            bytes: std::array::from_fn(|_| Box::new(Aligned([0; N]))),
            scales: [0.0; MAX_ROWS],
            sums: [0; MAX_ROWS],
        }
    }

    /// Each byte plane, from integer `at` on.
    #[inline(always)]
    pub fn from(&self, at: usize) -> [*const i8; BYTES] {
        let mut from = [std::ptr::null(); BYTES];
        for (from, bytes) in from.iter_mut().zip(&self.bytes) {
            *from = bytes.0[at..].as_ptr();
        }
        from
    }
}

impl<const N: usize> QuantizedRows<1, N> {
    /// Set row `row`, which begins at integer `at`, to `values` times `factor`, rounded.
    ///
    /// # Safety
    /// No product is larger than [`MAX_INT8`](crate::simd::MAX_INT8); the level's instructions are enabled.
    #[inline(always)]
    pub unsafe fn set<L: Int8Dot>(
        &mut self,
        row: usize,
        at: usize,
        values: &[[f32; LANES]],
        factor: f32,
    ) {
        let mut sum = 0;
        let bytes = self.bytes[0].0[at..].as_chunks_mut::<LANES>().0;
        for (values, bytes) in values.iter().zip(&mut bytes[..values.len()]) {
            // SAFETY: sixteen of each; the rest is the caller's promise.
            unsafe {
                let x = L::load(values.as_ptr()).mul(L::splat(factor));
                sum += x.store_codes(bytes.as_mut_ptr());
            }
        }
        self.sums[row] = sum;
    }
}

impl<const N: usize> QuantizedRows<2, N> {
    /// Set row `row`, which begins at integer `at`, to the products of `values` and `factors`, rounded: whole registers
    /// of [`REGISTER_CODES`].
    ///
    /// # Safety
    /// No product is larger than [`MAX_INT8_PAIR`](crate::simd::MAX_INT8_PAIR); the level's instructions are enabled.
    #[inline(always)]
    pub unsafe fn set<L: Int8Dot>(
        &mut self,
        row: usize,
        at: usize,
        values: &[[f32; LANES]],
        factors: &[[f32; LANES]; REGISTER_CODES / LANES],
    ) {
        let [high, low] = &mut self.bytes;
        let (high, low) = (
            &mut high.0[at..][..REGISTER_CODES],
            &mut low.0[at..][..REGISTER_CODES],
        );
        // SAFETY: as many bytes as the slices have; the rest is the caller's promise.
        self.sums[row] = unsafe {
            L::quantize_to_int8_pairs(values, factors, high.as_mut_ptr(), low.as_mut_ptr())
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dispatch::Level;
    use crate::simd::{MAX_INT8, MAX_INT8_PAIR, by_level, symmetric_scale_of};

    const COUNT: usize = 64;
    type OneByte = QuantizedRows<1, { MAX_ROWS * COUNT }>;
    type TwoBytes = QuantizedRows<2, { MAX_ROWS * COUNT }>;

    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn set_body<L: Int8Dot>(
        (one, two): (&mut OneByte, &mut TwoBytes),
        row: usize,
        values: &[f32; COUNT],
    ) {
        // SAFETY: by_level enables the instructions.
        unsafe {
            let (step, inverse) = symmetric_scale_of::<L>(values, MAX_INT8);
            one.scales[row] = step;
            one.set::<L>(row, row * COUNT, values.as_chunks().0, inverse);
            let (step, inverse) = symmetric_scale_of::<L>(values, MAX_INT8_PAIR);
            two.scales[row] = step;
            let inverse = [[inverse; LANES]; REGISTER_CODES / LANES];
            two.set::<L>(row, row * COUNT, values.as_chunks().0, &inverse);
        }
    }

    by_level! {
        /// # Safety
        /// The machine has the level.
        unsafe fn set(numbers: (&mut OneByte, &mut TwoBytes), row: usize, values: &[f32; COUNT]) = set_body;
    }

    /// Whether a row's integers are `values` within half a step, and add up to its sum.
    fn check<const BYTES: usize, const N: usize>(
        numbers: &QuantizedRows<BYTES, N>,
        row: usize,
        values: &[f32; COUNT],
    ) -> Result<(), TestCaseError> {
        let step = numbers.scales[row];
        if values.iter().any(|x| !x.is_finite()) {
            prop_assert!(step.is_nan());
            return Ok(());
        }
        let mut sum = 0;
        for (i, x) in values.iter().enumerate() {
            let bytes = numbers.bytes.iter();
            let number = bytes.fold(0, |all, bytes| {
                all * 256 + i32::from(bytes.0[row * COUNT + i])
            });
            sum += number;
            let error = (x - step * number as f32).abs();
            prop_assert!(
                error <= step * 0.51 || x.abs() < 1e-30,
                "{} bytes: {} {}",
                BYTES,
                x,
                error
            );
        }
        prop_assert_eq!(numbers.sums[row], sum);
        Ok(())
    }

    proptest! {
        #[test]
        fn rows_are_within_half_a_step(
            values in prop::collection::vec(-1f32..1.0, COUNT),
            scale in prop::sample::select(vec![0f32, 1e-33, 1e-6, 1.0, 1e30]),
            bad in prop::option::of(prop::sample::select(vec![f32::NAN, f32::INFINITY])),
        ) {
            let mut values: [f32; COUNT] = values.try_into().unwrap();
            values.iter_mut().for_each(|x| *x *= scale);
            if let Some(bad) = bad {
                values[7] = bad;
            }
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                let (mut one, mut two) = (OneByte::new(), TwoBytes::new());
                // SAFETY: the level is available.
                unsafe { set(level, (&mut one, &mut two), 3, &values) };
                check(&one, 3, &values)?;
                check(&two, 3, &values)?;
            }
        }
    }
}
