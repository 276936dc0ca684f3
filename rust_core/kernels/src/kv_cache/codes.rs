//! Quantisation of a key or value to int8 codes with one scale, `x ≈ scale * (code - 128)`.
//!
//! Keys are Hadamard-rotated first: single dimensions of keys are much larger than the others, which would lose precision
//! with one scale for all. On prose with the demo model, the KL divergence caused by int8 keys and values falls from 0.0007
//! to 0.0002. Rotating values too, or one scale per 32 dimensions of a rotated key, gives no further gain.

use super::QUAD;
use crate::simd::{
    Int8Dot, LANES, MAX_INT8, REGISTER_CODES, by_level, hadamard, symmetric_scale_of,
};
use crate::spec::MAX_HEAD_DIM;

/// Zero point: the unsigned code of 0.
pub(crate) const ZERO_CODE: u8 = 128;

/// Transform applied to a vector before quantisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transform {
    /// The vector is quantised as it is.
    None,
    /// Walsh–Hadamard transform ([`hadamard`]).
    Hadamard,
}

/// Quantise a vector of up to `DIMS` dimensions, zero-padded to a multiple of [`LANES`]; returns the scale.
///
/// A vector with a NaN or an infinity becomes zeros with a scale of NaN.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn quantize<L: Int8Dot, const DIMS: usize>(
    vector: &[f32],
    transform: Transform,
    codes: &mut [u8; DIMS],
) -> f32 {
    let mut padded = [0.0; DIMS];
    let padded = &mut padded[..vector.len().next_multiple_of(LANES)];
    padded[..vector.len()].copy_from_slice(vector);
    // SAFETY: sixteen floats each, codes for as many; instructions by the caller's promise.
    unsafe {
        if transform == Transform::Hadamard {
            hadamard::<L>(padded);
        }
        let (step, inverse) = symmetric_scale_of::<L>(padded, MAX_INT8);
        if step.is_nan() {
            codes.fill(ZERO_CODE);
            return step;
        }
        let inverse = L::splat(inverse);
        let (values, codes) = (
            padded.as_chunks::<REGISTER_CODES>(),
            codes.as_chunks_mut::<REGISTER_CODES>().0,
        );
        for (values, codes) in values.0.iter().zip(codes.iter_mut()) {
            L::quantize_to_u8(values, inverse, codes);
        }
        if !values.1.is_empty() {
            let mut rest = [0.0; REGISTER_CODES];
            rest[..values.1.len()].copy_from_slice(values.1);
            L::quantize_to_u8(&rest, inverse, &mut codes[values.0.len()]);
        }
        step
    }
}

/// Evaluate `$body` with constant `$dims` equal to `$len` for the common head dimensions, so that everything stays in
/// registers, and equal to [`MAX_HEAD_DIM`] otherwise.
macro_rules! with_dims {
    ($len:expr, $dims:ident => $body:expr) => {
        match $len {
            64 => {
                const $dims: usize = 64;
                $body
            }
            128 => {
                const $dims: usize = 128;
                $body
            }
            256 => {
                const $dims: usize = 256;
                $body
            }
            _ => {
                const $dims: usize = MAX_HEAD_DIM;
                $body
            }
        }
    };
}

/// # Safety
/// As [`write_key`], with the level's instructions enabled.
#[inline(always)]
unsafe fn write_key_body<L: Int8Dot>(key: &[f32], to: *mut [u8; QUAD]) -> f32 {
    with_dims!(key.len(), DIMS => {
        let mut codes = [0; DIMS];
        // SAFETY: the caller's promise.
        let scale = unsafe { quantize::<L, DIMS>(key, Transform::Hadamard, &mut codes) };
        let quads = codes[..key.len().next_multiple_of(LANES)].as_chunks::<QUAD>().0;
        for (number, quad) in quads.iter().enumerate() {
            // SAFETY: room by contract.
            unsafe { *to.add(number * LANES) = *quad };
        }
        scale
    })
}

by_level! {
    /// Rotate and quantise a key of at most [`MAX_HEAD_DIM`] dimensions, zero-padded to a multiple of 16; returns the scale. Each
    /// four codes are one entry; entries are 16 apart, starting at `to`.
    ///
    /// A key with a NaN or an infinity becomes zeros with a scale of NaN.
    ///
    /// # Safety
    /// The machine has the level; `to` is valid for these entries, which no other thread accesses.
    pub(super) unsafe fn write_key(key: &[f32], to: *mut [u8; QUAD]) -> f32 = write_key_body;
}

/// # Safety
/// As [`write_value`], with the level's instructions enabled.
#[inline(always)]
unsafe fn write_value_body<L: Int8Dot>(value: &[f32], to: *mut u8) -> f32 {
    with_dims!(value.len(), DIMS => {
        let mut codes = [0; DIMS];
        // SAFETY: the caller's promise.
        let scale = unsafe { quantize::<L, DIMS>(value, Transform::None, &mut codes) };
        let codes = &codes[..value.len().next_multiple_of(LANES)];
        for (dim, code) in codes.iter().enumerate() {
            // SAFETY: room by contract.
            unsafe { *to.add(dim * QUAD) = *code };
        }
        scale
    })
}

by_level! {
    /// Quantise a value like [`write_key`], but without rotation, and with codes [`QUAD`] bytes apart; returns the scale.
    ///
    /// # Safety
    /// The machine has the level; `to` is valid for these bytes, which no other thread accesses.
    pub(super) unsafe fn write_value(value: &[f32], to: *mut u8) -> f32 = write_value_body;
}

/// [`quantize`] for four vectors of equal length.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn quantize_four<L: Int8Dot, const DIMS: usize>(
    vectors: [&[f32]; QUAD],
    transform: Transform,
) -> ([[u8; DIMS]; QUAD], [f32; QUAD]) {
    let (mut codes, mut scales) = ([[0; DIMS]; QUAD], [0.0; QUAD]);
    for token in 0..QUAD {
        // The length of the first vector is a compile-time constant in the callers.
        let vector = &vectors[token][..vectors[0].len()];
        // SAFETY: the caller's promise.
        scales[token] = unsafe { quantize::<L, DIMS>(vector, transform, &mut codes[token]) };
    }
    (codes, scales)
}

/// # Safety
/// As [`write_keys`], with the level's instructions enabled.
#[inline(always)]
unsafe fn write_keys_body<L: Int8Dot>(keys: [&[f32]; QUAD], to: *mut [u8; QUAD]) -> [f32; QUAD] {
    with_dims!(keys[0].len(), DIMS => {
        // SAFETY: the caller's promise.
        let (codes, scales) = unsafe { quantize_four::<L, DIMS>(keys, Transform::Hadamard) };
        for block in 0..keys[0].len() / REGISTER_CODES {
            // SAFETY: room by contract.
            unsafe { L::store_keys(blocks_of(&codes, block), to.add(block * REGISTER_CODES / QUAD * LANES).cast()) };
        }
        scales
    })
}

by_level! {
    /// [`write_key`] for the keys of four consecutive tokens, faster. The dimension is a multiple of [`REGISTER_CODES`].
    ///
    /// # Safety
    /// As [`write_key`], of all four.
    pub(super) unsafe fn write_keys(keys: [&[f32]; QUAD], to: *mut [u8; QUAD]) -> [f32; QUAD] = write_keys_body;
}

/// # Safety
/// As [`write_values`], with the level's instructions enabled.
#[inline(always)]
unsafe fn write_values_body<L: Int8Dot>(
    values: [&[f32]; QUAD],
    to: *mut [u8; QUAD],
) -> [f32; QUAD] {
    with_dims!(values[0].len(), DIMS => {
        // SAFETY: the caller's promise.
        let (codes, scales) = unsafe { quantize_four::<L, DIMS>(values, Transform::None) };
        for block in 0..values[0].len() / REGISTER_CODES {
            // SAFETY: room by contract.
            unsafe { L::store_values(blocks_of(&codes, block), to.add(block * REGISTER_CODES)) };
        }
        scales
    })
}

by_level! {
    /// [`write_value`] for the values of four consecutive tokens, faster. The dimension is a multiple of [`REGISTER_CODES`].
    ///
    /// # Safety
    /// As [`write_value`], of all four.
    pub(super) unsafe fn write_values(values: [&[f32]; QUAD], to: *mut [u8; QUAD]) -> [f32; QUAD] = write_values_body;
}

/// Codes `block * REGISTER_CODES..(block + 1) * REGISTER_CODES` of four tokens.
#[inline(always)]
fn blocks_of<const DIMS: usize>(
    codes: &[[u8; DIMS]; QUAD],
    block: usize,
) -> [&[u8; REGISTER_CODES]; QUAD] {
    let [a, b, c, d] = codes;
    [
        &a.as_chunks().0[block],
        &b.as_chunks().0[block],
        &c.as_chunks().0[block],
        &d.as_chunks().0[block],
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dispatch::Level;

    proptest! {
        #[test]
        fn codes_are_rounded_to_nearest_on_every_level(
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
                let mut quads = [[0; QUAD]; MAX_HEAD_DIM];
                // SAFETY: the level is available; room for the most dimensions.
                let scale = unsafe { write_value(level, &vector, quads.as_mut_ptr().cast()) };
                let codes = quads.map(|quad| quad[0]);
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
