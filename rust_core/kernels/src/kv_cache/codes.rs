//! A key or a value as int8 codes of one scale, `x ≈ scale * (code - 128)`.

use crate::simd::{ByteDots, LANES, by_level};
use crate::spec::MAX_HEAD_DIM;

/// Stands for zero among codes, which are unsigned.
pub(crate) const ZERO_CODE: u8 = 128;

/// The largest code's distance from [`ZERO_CODE`].
const LARGEST: f32 = 127.0;

/// Call `$body` with each sixteen floats of `$vector` and their number, the last ones filled up with zeros.
macro_rules! each_vector {
    ($vector:expr, |$number:ident, $x:ident| $body:expr) => {
        let (whole, rest) = $vector.as_chunks::<LANES>();
        for ($number, $x) in whole.iter().enumerate() {
            let $x = L::load($x.as_ptr());
            $body
        }
        if !rest.is_empty() {
            let mut last = [0.0; LANES];
            last[..rest.len()].copy_from_slice(rest);
            let ($number, $x) = (whole.len(), L::load(last.as_ptr()));
            $body
        }
    };
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn quantize_vector_body<L: ByteDots>(vector: &[f32], codes: &mut [u8; MAX_HEAD_DIM]) -> f32 {
    assert!(vector.len() <= MAX_HEAD_DIM);
    // SAFETY: sixteen floats each, codes for as many; instructions by the caller's promise.
    unsafe {
        let zero = L::splat(0.0);
        let mut largest = zero;
        each_vector!(vector, |_number, x| largest =
            largest.larger_or_nan(x.max(zero.sub(x))));
        let largest = largest.largest_or_nan();
        if !largest.is_finite() {
            codes.fill(ZERO_CODE);
            return f32::NAN;
        }
        // Below this the inverse overflows; such a vector is zero for every purpose.
        let inverse = if largest > 1e-30 {
            LARGEST / largest
        } else {
            0.0
        };
        let inverse = L::splat(inverse);
        each_vector!(vector, |number, x| {
            let to = codes[LANES * number..][..LANES].as_mut_ptr();
            x.mul(inverse).store_codes(to.cast());
        });
        for code in codes {
            *code = code.wrapping_add(ZERO_CODE);
        }
        largest / LARGEST
    }
}

by_level! {
    /// Round a vector of at most [`MAX_HEAD_DIM`] to codes, and return their scale. Codes behind the vector hold anything.
    ///
    /// A vector that has a NaN or an infinity is zeros with a scale of NaN.
    ///
    /// # Safety
    /// The machine has the level.
    pub(super) unsafe fn quantize_vector(vector: &[f32], codes: &mut [u8; MAX_HEAD_DIM]) -> f32 = quantize_vector_body;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dispatch::Level;

    proptest! {
        #[test]
        fn codes_are_the_nearest_on_every_level(
            vector in prop::collection::vec(-1f32..1.0, 1..=MAX_HEAD_DIM),
            size in prop::sample::select(vec![0f32, 1e-33, 1e-4, 1.0, 1e20]),
            bad in prop::option::of(prop::sample::select(vec![f32::NAN, f32::INFINITY, -f32::NAN])),
        ) {
            let mut vector: Vec<f32> = vector.into_iter().map(|x| x * size).collect();
            let largest = vector.iter().fold(0f32, |largest, x| largest.max(x.abs()));
            let inverse = if largest > 1e-30 { 127.0 / largest } else { 0.0 };
            let exact: Vec<u8> = vector
                .iter()
                .map(|x| ((x * inverse).round_ties_even() as i32 + 128) as u8)
                .collect();
            if let Some(bad) = bad {
                let at = vector.len() / 2;
                vector[at] = bad;
            }
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                let mut codes = [0; MAX_HEAD_DIM];
                // SAFETY: the level is available.
                let scale = unsafe { quantize_vector(level, &vector, &mut codes) };
                if bad.is_some() {
                    prop_assert!(scale.is_nan(), "{:?}", level);
                } else {
                    prop_assert_eq!(scale, largest / 127.0, "{:?}", level);
                    prop_assert_eq!(&codes[..vector.len()], &exact[..], "{:?}", level);
                }
            }
        }
    }
}
