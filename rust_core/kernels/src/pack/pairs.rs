//! Scales and offsets of 4-bit weights as pairs of 16-bit integers.
//!
//! A weight is `unit * (scale * (code - 8) + 8 * offset)`, with a unit for each column and a pair for each group of 32
//! inputs. The dot product of a group with a row's activation codes `x` is then, in units and without a rounding,
//!
//! ```text
//! scale * Σ (code - 8) * x  +  offset * 8 * Σ x
//! ```
//!
//! Both sums fit 16 bits, so they stand in the halves of one 32-bit lane: a dot product `Σ code * x` that starts at
//! `8 Σ x` in the upper half and at `-8 Σ x` in the lower one ([`initial_sum`]) leaves them there, and one instruction
//! (`vpmaddwd`) yields the result. Where the lower half is negative, it has borrowed one from the upper, an eighth of an
//! activation's step: all levels compute it so.
//!
//! A column's unit is a power of two, and its largest number takes 15 bits. A scale in f16 has eleven, so it is kept exactly
//! unless it is 16 times smaller than its column's largest; minima are rounded to a 4,000th of that.

/// The code that the scale is a multiple of zero for.
pub const ZERO_POINT: i32 = 8;

/// Where a group's dot product starts for a row whose activation codes sum to one.
const INITIAL_SUM_OF_ONE: i32 = (ZERO_POINT << 16) - ZERO_POINT;

/// The largest magnitude of either number.
const MAX_MAGNITUDE: f32 = i16::MAX as f32;

/// Where a group's dot product starts: `sum` is that of the row's activation codes, within ±127 · 32.
#[inline(always)]
pub const fn initial_sum(sum: i32) -> i32 {
    INITIAL_SUM_OF_ONE * sum
}

/// The sum that [`initial_sum`] was given.
#[inline(always)]
pub const fn code_sum(initial_sum: i32) -> i32 {
    -((initial_sum as i16) as i32 / ZERO_POINT)
}

/// What a dot product from [`initial_sum`] on comes to, in units.
#[inline(always)]
pub const fn dequantize_dot(dot: i32, [scale, offset]: [i16; 2]) -> i32 {
    (dot as i16) as i32 * scale as i32 + (dot >> 16) * offset as i32
}

/// A code's weight in units.
pub const fn dequantize_code(code: u8, [scale, offset]: [i16; 2]) -> i32 {
    (code as i32 - ZERO_POINT) * scale as i32 + ZERO_POINT * offset as i32
}

/// A group's scale and offset, of which its weights are `scale * (code - 8) + 8 * offset`.
fn scale_and_offset(scale: f32, min: f32) -> [f32; 2] {
    // Wider for a moment, so that what follows is the only rounding.
    let offset =
        (f64::from(min) + f64::from(ZERO_POINT) * f64::from(scale)) / f64::from(ZERO_POINT);
    [scale, offset as f32]
}

/// The unit of a column: the largest number of its groups takes 15 bits. NaN if one of them is not finite.
pub fn column_scale(scales: &[f32], mins: &[f32]) -> f32 {
    let mut largest = 0f32;
    for number in scales
        .iter()
        .zip(mins)
        .flat_map(|(&scale, &min)| scale_and_offset(scale, min))
    {
        if !number.is_finite() {
            return f32::NAN;
        }
        largest = largest.max(number.abs());
    }
    if largest < f32::MIN_POSITIVE * MAX_MAGNITUDE {
        return f32::MIN_POSITIVE;
    }
    // The power of two at or below, by its exponent alone.
    let power = f32::from_bits(largest.to_bits() & 0x7f80_0000);
    let column_scale = power / ((MAX_MAGNITUDE + 1.0) / 2.0);
    if (largest / column_scale).round_ties_even() > MAX_MAGNITUDE {
        2.0 * column_scale
    } else {
        column_scale
    }
}

/// A group's pair in units; zeros if the unit is NaN.
pub fn quantize_pair(scale: f32, min: f32, column_scale: f32) -> [i16; 2] {
    // Within 16 bits by the choice of the unit.
    scale_and_offset(scale, min).map(|number| (number / column_scale).round_ties_even() as i16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::layout::GROUP;
    use proptest::prelude::*;

    #[test]
    fn f16_scales_are_exact_within_a_factor_of_16() {
        for bits in 0x2c00..0x3c00u16 {
            let scale = half::f16::from_bits(bits).to_f32();
            let largest = half::f16::from_bits(0x3bff).to_f32();
            let (scales, mins) = ([scale, largest], [-8.0 * scale, -8.0 * largest]);
            let column_scale = column_scale(&scales, &mins);
            let [kept, offset] = quantize_pair(scale, mins[0], column_scale);
            assert_eq!((f32::from(kept) * column_scale, offset), (scale, 0));
        }
    }

    #[test]
    fn zero_and_non_finite_columns_become_zero_pairs() {
        assert_eq!(
            quantize_pair(0.0, 0.0, column_scale(&[0.0], &[0.0])),
            [0, 0]
        );
        for bad in [f32::NAN, f32::INFINITY] {
            let column_scale = column_scale(&[1.0, bad], &[0.0, 0.0]);
            assert!(column_scale.is_nan());
            assert_eq!(quantize_pair(1.0, 0.0, column_scale), [0, 0]);
        }
    }

    proptest! {
        #[test]
        fn dot_product_halves_hold_the_two_sums(
            codes in prop::array::uniform32(0u8..16), x in prop::array::uniform32(-127i8..=127),
            pair: [i16; 2],
        ) {
            let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
            let product = |zero: i32| -> i32 {
                codes.iter().zip(x).map(|(&code, x)| (i32::from(code) - zero) * i32::from(x)).sum()
            };
            let dot = initial_sum(sum) + product(0);
            let low = product(ZERO_POINT);
            let borrowed = i32::from(low < 0);
            prop_assert_eq!(i32::from(dot as i16), low);
            prop_assert_eq!(dot >> 16, ZERO_POINT * sum - borrowed);
            prop_assert_eq!(code_sum(initial_sum(sum)), sum);
            let expected = i64::from(low) * i64::from(pair[0])
                + i64::from(ZERO_POINT * sum - borrowed) * i64::from(pair[1]);
            prop_assert_eq!(i64::from(dequantize_dot(dot, pair)), expected);
        }

        #[test]
        fn rounding_error_is_bounded_by_the_column_scale(
            groups in prop::collection::vec((-1f32..1.0, -1f32..1.0), 1..20), power in -20i32..20, code in 0u8..16,
        ) {
            let size = 2f32.powi(power);
            let scales: Vec<f32> = groups.iter().map(|group| group.0 * size).collect();
            let mins: Vec<f32> = groups.iter().map(|group| group.1 * 8.0 * size).collect();
            let column_scale = column_scale(&scales, &mins);
            let most = 2.0 * size;
            prop_assert!(column_scale <= most / 16383.0);
            for (&scale, &min) in scales.iter().zip(&mins) {
                let kept = dequantize_code(code, quantize_pair(scale, min, column_scale)) as f32 * column_scale;
                let exact = scale * f32::from(code) + min;
                prop_assert!((kept - exact).abs() <= 8.001 * column_scale + 1e-6 * most);
            }
        }
    }

    /// Activation codes sum to so much at most.
    #[test]
    fn sums_fit_16_bits() {
        const MOST: i32 = 127 * GROUP as i32;
        for sum in [MOST, -MOST] {
            assert_eq!(
                initial_sum(sum) >> 16,
                ZERO_POINT * sum - i32::from(sum > 0)
            );
            assert_eq!(code_sum(initial_sum(sum)), sum);
        }
        assert!(ZERO_POINT * MOST <= i32::from(i16::MAX));
        // The worst of both halves is no overflow.
        let [low, high] = [-ZERO_POINT * MOST, ZERO_POINT * MOST + 1].map(i64::from);
        let worst = low * i64::from(-i16::MAX) + high * i64::from(i16::MAX);
        assert!(worst <= i64::from(i32::MAX));
    }
}
