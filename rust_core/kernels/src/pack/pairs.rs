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
//! `8 Σ x` in the upper half and at `-8 Σ x` in the lower one ([`start`]) leaves them there, and one instruction
//! (`vpmaddwd`) yields the result. Where the lower half is negative, it has borrowed one from the upper, an eighth of an
//! activation's step: all levels compute it so.
//!
//! A column's unit is a power of two, and its largest number takes 15 bits. A scale in f16 has eleven, so it is kept exactly
//! unless it is 16 times smaller than its column's largest; minima are rounded to a 4,000th of that.

/// The code that the scale is a multiple of zero for.
pub const ZERO: i32 = 8;

/// Where a group's dot product starts for a row whose activation codes sum to one.
const START: i32 = (ZERO << 16) - ZERO;

/// The largest magnitude of either number.
const LARGEST: f32 = i16::MAX as f32;

/// Where a group's dot product starts: `sum` is that of the row's activation codes, within ±127 · 32.
#[inline(always)]
pub const fn start(sum: i32) -> i32 {
    START * sum
}

/// The sum that [`start`] was given.
#[inline(always)]
pub const fn sum_of(start: i32) -> i32 {
    -((start as i16) as i32 / ZERO)
}

/// What a dot product from [`start`] on comes to, in units.
#[inline(always)]
pub const fn value(dot: i32, [scale, offset]: [i16; 2]) -> i32 {
    (dot as i16) as i32 * scale as i32 + (dot >> 16) * offset as i32
}

/// A code's weight in units.
pub const fn weight(code: u8, [scale, offset]: [i16; 2]) -> i32 {
    (code as i32 - ZERO) * scale as i32 + ZERO * offset as i32
}

/// A group's scale and offset, of which its weights are `scale * (code - 8) + 8 * offset`.
fn numbers(scale: f32, min: f32) -> [f32; 2] {
    // Wider for a moment, so that what follows is the only rounding.
    let offset = (f64::from(min) + f64::from(ZERO) * f64::from(scale)) / f64::from(ZERO);
    [scale, offset as f32]
}

/// The unit of a column: the largest number of its groups takes 15 bits. NaN if one of them is not finite.
pub fn unit_of(scales: &[f32], mins: &[f32]) -> f32 {
    let mut largest = 0f32;
    for number in scales
        .iter()
        .zip(mins)
        .flat_map(|(&scale, &min)| numbers(scale, min))
    {
        if !number.is_finite() {
            return f32::NAN;
        }
        largest = largest.max(number.abs());
    }
    if largest < f32::MIN_POSITIVE * LARGEST {
        return f32::MIN_POSITIVE;
    }
    // The power of two at or below, by its exponent alone.
    let power = f32::from_bits(largest.to_bits() & 0x7f80_0000);
    let unit = power / ((LARGEST + 1.0) / 2.0);
    if (largest / unit).round_ties_even() > LARGEST {
        2.0 * unit
    } else {
        unit
    }
}

/// A group's pair in units; zeros if the unit is NaN.
pub fn pair_of(scale: f32, min: f32, unit: f32) -> [i16; 2] {
    // Within 16 bits by the choice of the unit.
    numbers(scale, min).map(|number| (number / unit).round_ties_even() as i16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::layout::GROUP;
    use proptest::prelude::*;

    #[test]
    fn scales_in_f16_are_kept_exactly_within_16_times() {
        for bits in 0x2c00..0x3c00u16 {
            let scale = half::f16::from_bits(bits).to_f32();
            let largest = half::f16::from_bits(0x3bff).to_f32();
            let (scales, mins) = ([scale, largest], [-8.0 * scale, -8.0 * largest]);
            let unit = unit_of(&scales, &mins);
            let [kept, offset] = pair_of(scale, mins[0], unit);
            assert_eq!((f32::from(kept) * unit, offset), (scale, 0));
        }
    }

    #[test]
    fn a_column_of_zeros_and_one_that_is_no_number() {
        assert_eq!(pair_of(0.0, 0.0, unit_of(&[0.0], &[0.0])), [0, 0]);
        for bad in [f32::NAN, f32::INFINITY] {
            let unit = unit_of(&[1.0, bad], &[0.0, 0.0]);
            assert!(unit.is_nan());
            assert_eq!(pair_of(1.0, 0.0, unit), [0, 0]);
        }
    }

    proptest! {
        #[test]
        fn halves_of_a_dot_product_are_the_two_sums(
            codes in prop::array::uniform32(0u8..16), x in prop::array::uniform32(-127i8..=127),
            pair: [i16; 2],
        ) {
            let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
            let product = |zero: i32| -> i32 {
                codes.iter().zip(x).map(|(&code, x)| (i32::from(code) - zero) * i32::from(x)).sum()
            };
            let dot = start(sum) + product(0);
            let low = product(ZERO);
            let borrowed = i32::from(low < 0);
            prop_assert_eq!(i32::from(dot as i16), low);
            prop_assert_eq!(dot >> 16, ZERO * sum - borrowed);
            prop_assert_eq!(sum_of(start(sum)), sum);
            let expected = i64::from(low) * i64::from(pair[0])
                + i64::from(ZERO * sum - borrowed) * i64::from(pair[1]);
            prop_assert_eq!(i64::from(value(dot, pair)), expected);
        }

        #[test]
        fn weights_are_kept_to_a_small_part_of_the_largest_scale(
            groups in prop::collection::vec((-1f32..1.0, -1f32..1.0), 1..20), power in -20i32..20, code in 0u8..16,
        ) {
            let size = 2f32.powi(power);
            let scales: Vec<f32> = groups.iter().map(|group| group.0 * size).collect();
            let mins: Vec<f32> = groups.iter().map(|group| group.1 * 8.0 * size).collect();
            let unit = unit_of(&scales, &mins);
            let most = 2.0 * size;
            prop_assert!(unit <= most / 16383.0);
            for (&scale, &min) in scales.iter().zip(&mins) {
                let kept = weight(code, pair_of(scale, min, unit)) as f32 * unit;
                let exact = scale * f32::from(code) + min;
                prop_assert!((kept - exact).abs() <= 8.001 * unit + 1e-6 * most);
            }
        }
    }

    /// Activation codes sum to so much at most.
    #[test]
    fn no_sum_leaves_its_half() {
        const MOST: i32 = 127 * GROUP as i32;
        for sum in [MOST, -MOST] {
            assert_eq!(start(sum) >> 16, ZERO * sum - i32::from(sum > 0));
            assert_eq!(sum_of(start(sum)), sum);
        }
        assert!(ZERO * MOST <= i32::from(i16::MAX));
        // The worst of both halves is no overflow.
        let [low, high] = [-ZERO * MOST, ZERO * MOST + 1].map(i64::from);
        let worst = low * i64::from(-i16::MAX) + high * i64::from(i16::MAX);
        assert!(worst <= i64::from(i32::MAX));
    }
}
