//! Scale of a group of 6-bit codes: `weight = scale * code` with codes from -32 to 31, with the least squared error that was found.
//!
//! As for 4 bits ([`super::affine_fit`]), but without a minimum: the weight of the largest magnitude becomes about -32, whose
//! sign the scale has to match.

use super::Lane16;
use crate::simd::{Lanes, ROUND};

/// Weights of a group.
pub(super) const GROUP: usize = 16;

pub(super) const MIN_CODE: f32 = -32.0;
pub(super) const MAX_CODE: f32 = 31.0;

/// Magnitudes of the code of the largest weight, first candidate, and the step between them.
const FIRST: f32 = 31.2;
const STEP: f32 = 0.2;
const CANDIDATES: usize = 9;

/// A smaller largest weight is taken for 0, so that its inverse is finite.
const LEAST: f32 = 1e-30;

/// Scales of sixteen groups, one a lane.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(super) unsafe fn fit<L: Lanes>(values: &[Lane16; GROUP]) -> Lane16 {
    // SAFETY: arrays of sixteen; the instructions are the caller's promise, for the whole body.
    unsafe {
        let zero = L::splat(0.0);
        let (mut largest, mut magnitude) = (zero, zero);
        for value in values {
            let x = L::load(value.as_ptr());
            let size = x.max(zero.sub(x));
            largest = magnitude.select_less(size, x, largest);
            magnitude = magnitude.select_less(size, size, magnitude);
        }
        let inverse = magnitude.select_less(L::splat(LEAST), zero, L::splat(1.0).div(largest));
        let (mut best, mut gain) = (zero, zero);
        for candidate in 0..CANDIDATES {
            let codes = L::splat(-(FIRST + STEP * candidate as f32));
            let factor = inverse.mul(codes);
            let (mut squares, mut products) = (zero, zero);
            for value in values {
                let x = L::load(value.as_ptr());
                let code = round_clamped(x.mul(factor));
                squares = squares.add(code.mul(code));
                products = products.add(code.mul(x));
            }
            // With the scale products / squares the squared error falls by products² / squares.
            let scale = products.div(squares);
            let falls = scale.mul(products);
            best = gain.select_less(falls, scale, best);
            gain = gain.select_less(falls, falls, gain);
        }
        best.to_array()
    }
}

/// The nearest codes.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(super) unsafe fn round_clamped<L: Lanes>(x: L) -> L {
    // SAFETY: the instructions are the caller's promise.
    unsafe {
        let (low, high, round) = (L::splat(MIN_CODE), L::splat(MAX_CODE), L::splat(ROUND));
        let clamped = x.select_less(high, x, high);
        let clamped = low.select_less(clamped, clamped, low);
        clamped.add(round).sub(round)
    }
}
