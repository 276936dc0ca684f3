//! Scales and offsets of 4-bit weights as pairs of 16-bit integers.
//!
//! A weight is `column_scale * (scale * (code - 8) + 8 * offset)`, with a pair (scale, offset) for each group of 32 inputs. The
//! dot product of a group with a row's activation codes `x`, divided by the column scale, is the exact integer
//!
//! ```text
//! scale * Σ (code - 8) * x  +  offset * 8 * Σ x
//! ```
//!
//! Both sums fit 16 bits, so they share one 32-bit lane: the dot product `Σ code * x` is accumulated onto an initial value with
//! `8 Σ x` in the high half and `-8 Σ x` in the low half ([`initial_sum`]), and one instruction (`vpmaddwd`) with the pair
//! yields the result. A negative low half borrows one from the high half, an eighth of an activation step. All levels
//! compute it this way, so they agree bit for bit.
//!
//! The column scale is a power of two such that the largest scale or offset of the column takes 15 bits. An f16 scale has 11
//! bits, so it is exact unless it is more than 16 times smaller than the column's largest. Minima are rounded to a 4,000th of
//! that.

/// The code to which the scale contributes zero.
pub const ZERO_POINT: i32 = 8;

/// [`initial_sum`] of a row whose activation codes sum to one.
const INITIAL_SUM_OF_ONE: i32 = (ZERO_POINT << 16) - ZERO_POINT;

/// The largest magnitude of a scale or an offset.
const MAX_MAGNITUDE: f32 = i16::MAX as f32;

/// Initial value of a group's dot product. `sum` is the sum of the row's activation codes, within ±127 · 32.
#[inline(always)]
pub const fn initial_sum(sum: i32) -> i32 {
    INITIAL_SUM_OF_ONE * sum
}

/// The sum of activation codes that [`initial_sum`] was computed from.
#[inline(always)]
pub const fn code_sum(initial_sum: i32) -> i32 {
    -((initial_sum as i16) as i32 / ZERO_POINT)
}

/// Value of a dot product that was accumulated onto [`initial_sum`], divided by the column scale.
#[inline(always)]
pub const fn dequantize_dot(dot: i32, [scale, offset]: [i16; 2]) -> i32 {
    (dot as i16) as i32 * scale as i32 + (dot >> 16) * offset as i32
}

/// A code's weight divided by the column scale.
pub const fn dequantize_code(code: u8, [scale, offset]: [i16; 2]) -> i32 {
    (code as i32 - ZERO_POINT) * scale as i32 + ZERO_POINT * offset as i32
}

/// A group's scale and offset such that its weights are `scale * (code - 8) + 8 * offset`.
fn scale_and_offset(scale: f32, min: f32) -> [f32; 2] {
    // In f64, so that the conversion to f32 is the only rounding.
    let offset =
        (f64::from(min) + f64::from(ZERO_POINT) * f64::from(scale)) / f64::from(ZERO_POINT);
    [scale, offset as f32]
}

/// The scale of a column: with it, the largest scale or offset of its groups takes 15 bits. NaN if one is not finite.
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
    // The largest power of two not above it: clear the mantissa.
    let power = f32::from_bits(largest.to_bits() & 0x7f80_0000);
    let column_scale = power / ((MAX_MAGNITUDE + 1.0) / 2.0);
    if (largest / column_scale).round_ties_even() > MAX_MAGNITUDE {
        2.0 * column_scale
    } else {
        column_scale
    }
}

/// A group's scale and offset, rounded to multiples of the column scale. Zeros if the column scale is NaN.
pub fn quantize_pair(scale: f32, min: f32, column_scale: f32) -> [i16; 2] {
    // Within 16 bits by the choice of the column scale.
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

    /// The largest possible sum of activation codes does not overflow.
    #[test]
    fn sums_fit_16_bits() {
        const MAX_SUM: i32 = 127 * GROUP as i32;
        for sum in [MAX_SUM, -MAX_SUM] {
            assert_eq!(
                initial_sum(sum) >> 16,
                ZERO_POINT * sum - i32::from(sum > 0)
            );
            assert_eq!(code_sum(initial_sum(sum)), sum);
        }
        assert!(ZERO_POINT * MAX_SUM <= i32::from(i16::MAX));
        // Not even with both halves at their extremes.
        let [low, high] = [-ZERO_POINT * MAX_SUM, ZERO_POINT * MAX_SUM + 1].map(i64::from);
        let worst = low * i64::from(-i16::MAX) + high * i64::from(i16::MAX);
        assert!(worst <= i64::from(i32::MAX));
    }
}
