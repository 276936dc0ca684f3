//! Scale and minimum of a group of 4-bit codes: `weight = scale * code + min`, with the least squared error that was found.
//!
//! The full range divided by 15 is not the best scale: a slightly smaller one clips the outermost weights and rounds all others
//! less. So codes are rounded with several scales, scale and minimum of the least squared error are computed for each set of
//! codes (linear regression), and the best set wins.

use super::Lane16;
use crate::simd::{Lanes, ROUND};

/// Weights of a group.
pub(super) const GROUP: usize = 32;

/// The largest code.
const MAX_CODE: f32 = 15.0;

/// Codes that the range of a group is divided into, first and last candidate, and the step between them.
const FIRST: f32 = 14.0;
const STEP: f32 = 0.1;
const CANDIDATES: usize = 21;

/// A smaller range is taken for none, so that its inverse is finite.
const LEAST_RANGE: f32 = 1e-30;

/// Scales and minima of sixteen groups, one a lane. With `NEGATIVE` no minimum is above 0.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(super) unsafe fn fit<L: Lanes, const NEGATIVE: bool>(
    values: &[Lane16; GROUP],
) -> (Lane16, Lane16) {
    // SAFETY: arrays of sixteen; the instructions are the caller's promise, for the whole body.
    unsafe {
        let zero = L::splat(0.0);
        let count = L::splat(GROUP as f32);
        let (low, high) = bounds::<L, NEGATIVE>(values);
        let range = high.sub(low);
        let inverse = range.select_less(L::splat(LEAST_RANGE), zero, L::splat(1.0).div(range));
        // Relative to the smallest weight, so that the sums below do not cancel.
        let mut shifted = [[0.0; 16]; GROUP];
        let (mut sum, mut squares) = (zero, zero);
        for (value, shifted) in values.iter().zip(&mut shifted) {
            let x = L::load(value.as_ptr()).sub(low);
            x.store(shifted.as_mut_ptr());
            sum = sum.add(x);
            squares = squares.add(x.mul(x));
        }
        let mut best = Fit {
            scale: zero,
            min: zero,
            error: squares,
        };
        for candidate in 0..CANDIDATES {
            let factor = inverse.mul(L::splat(FIRST + STEP * candidate as f32));
            let codes = Codes::round(&shifted, factor);
            let fit = codes.regress::<NEGATIVE>(count, sum, squares, zero.sub(low));
            let error = best.error;
            best = Fit {
                scale: fit.error.select_less(error, fit.scale, best.scale),
                min: fit.error.select_less(error, fit.min, best.min),
                error: fit.error.select_less(error, fit.error, error),
            };
        }
        (best.scale.to_array(), best.min.add(low).to_array())
    }
}

/// The smallest and the largest weight; the smallest is at most 0 with `NEGATIVE`.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn bounds<L: Lanes, const NEGATIVE: bool>(values: &[Lane16; GROUP]) -> (L, L) {
    // SAFETY: arrays of sixteen; the instructions are the caller's promise.
    unsafe {
        let first = L::load(values[0].as_ptr());
        let (mut low, mut high) = (first, first);
        for value in &values[1..] {
            let x = L::load(value.as_ptr());
            low = x.select_less(low, x, low);
            high = high.select_less(x, x, high);
        }
        let zero = L::splat(0.0);
        if NEGATIVE {
            low = low.select_less(zero, low, zero);
        }
        (low, high)
    }
}

#[derive(Clone, Copy)]
struct Fit<L> {
    scale: L,
    min: L,
    error: L,
}

/// Sums over the codes of a group.
struct Codes<L> {
    codes: L,
    squares: L,
    products: L,
}

impl<L: Lanes> Codes<L> {
    /// Of weights that are at least 0, multiplied with `factor` and rounded.
    ///
    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn round(values: &[Lane16; GROUP], factor: L) -> Self {
        // SAFETY: arrays of sixteen; the instructions are the caller's promise.
        unsafe {
            let (zero, top, round) = (L::splat(0.0), L::splat(MAX_CODE), L::splat(ROUND));
            let (mut codes, mut squares, mut products) = (zero, zero, zero);
            for value in values {
                let x = L::load(value.as_ptr());
                let code = x.mul(factor).add(round).sub(round);
                let code = code.select_less(top, code, top);
                codes = codes.add(code);
                squares = squares.add(code.mul(code));
                products = products.add(code.mul(x));
            }
            Self {
                codes,
                squares,
                products,
            }
        }
    }

    /// Scale and minimum with the least squared error for these codes. `sum` and `squares` are of the weights; with `NEGATIVE`
    /// the minimum is at most `limit`. Codes that are all equal have minimum 0.
    ///
    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn regress<const NEGATIVE: bool>(
        &self,
        count: L,
        sum: L,
        squares: L,
        limit: L,
    ) -> Fit<L> {
        // SAFETY: the instructions are the caller's promise.
        unsafe {
            let zero = L::splat(0.0);
            // An exact integer, at least 1 unless all codes are equal.
            let spread = count.mul(self.squares).sub(self.codes.mul(self.codes));
            let equal = L::splat(0.5);
            let slope = count
                .mul(self.products)
                .sub(sum.mul(self.codes))
                .div(spread);
            let min = sum.sub(slope.mul(self.codes)).div(count);
            let mut min = spread.select_less(equal, zero, min);
            if NEGATIVE {
                min = limit.select_less(min, limit, min);
            }
            // For a minimum that is given; the same as the slope if it was not changed.
            let fixed = self.products.sub(min.mul(self.codes)).div(self.squares);
            let scale = self.squares.select_less(equal, zero, fixed);
            let linear = scale.mul(self.products).add(min.mul(sum));
            let cross = scale.mul(min).mul(self.codes);
            let error = squares
                .sub(linear.add(linear))
                .add(scale.mul(scale).mul(self.squares))
                .add(cross.add(cross))
                .add(min.mul(min).mul(count));
            Fit { scale, min, error }
        }
    }
}

/// Codes of a group for scales and minima that are given, clamped to 4 bits; 0 where the scale is 0.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(super) unsafe fn codes<L: Lanes>(
    values: &[Lane16; GROUP],
    scale: &Lane16,
    min: &Lane16,
) -> [[u8; 16]; GROUP] {
    // SAFETY: arrays of sixteen; the instructions are the caller's promise.
    unsafe {
        let (factor, min) = (factor::<L>(scale), L::load(min.as_ptr()));
        let mut codes = [[0; 16]; GROUP];
        for (value, codes) in values.iter().zip(&mut codes) {
            let x = L::load(value.as_ptr());
            *codes = round_clamped(x.sub(min).mul(factor))
                .to_array()
                .map(|code| code as u8);
        }
        codes
    }
}

/// The squared error of a group with scales and minima that are given.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(super) unsafe fn error<L: Lanes>(
    values: &[Lane16; GROUP],
    scale: &Lane16,
    min: &Lane16,
) -> Lane16 {
    // SAFETY: arrays of sixteen; the instructions are the caller's promise.
    unsafe {
        let (scales, factor, min) = (
            L::load(scale.as_ptr()),
            factor::<L>(scale),
            L::load(min.as_ptr()),
        );
        let mut error = L::splat(0.0);
        for value in values {
            let x = L::load(value.as_ptr()).sub(min);
            let off = x.sub(scales.mul(round_clamped(x.mul(factor))));
            error = error.add(off.mul(off));
        }
        error.to_array()
    }
}

/// The inverse of each scale; 0 where it is not finite.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn factor<L: Lanes>(scale: &Lane16) -> L {
    let factor = scale.map(super::blocks::inverse);
    // SAFETY: an array of sixteen; the instructions are the caller's promise.
    unsafe { L::load(factor.as_ptr()) }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn round_clamped<L: Lanes>(x: L) -> L {
    // SAFETY: the instructions are the caller's promise.
    unsafe {
        let (zero, top, round) = (L::splat(0.0), L::splat(MAX_CODE), L::splat(ROUND));
        let clamped = x.select_less(top, x, top);
        let clamped = zero.select_less(clamped, clamped, zero);
        clamped.add(round).sub(round)
    }
}
