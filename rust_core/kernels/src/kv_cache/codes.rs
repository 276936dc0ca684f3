//! A key or a value as int8 codes of one scale, `x ≈ scale * (code - 128)`.
//!
//! A key is mixed first: single dimensions of keys dwarf the others, and one scale for all would leave these few bits.
//! On the demo model's prose the divergence that int8 keys and values cause falls from 0.0007 to 0.0002; mixing values,
//! too, or a scale for every 32 dimensions of a mixed key, changes nothing more.

use super::QUAD;
use crate::simd::{
    Int8Dot, LANES, MAX_INT8, REGISTER_CODES, by_level, hadamard, symmetric_scale_of,
};
use crate::spec::MAX_HEAD_DIM;

/// Stands for zero among codes, which are unsigned.
pub(crate) const ZERO_CODE: u8 = 128;

/// What becomes codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transform {
    /// The vector itself.
    None,
    /// Its Walsh–Hadamard transform ([`hadamard`]).
    Hadamard,
}

/// Codes of a vector of up to `DIMS` dimensions, filled up to whole vectors with zeros, and their scale.
///
/// A vector that has a NaN or an infinity is zeros with a scale of NaN.
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

/// Evaluate `$body` with the constant `$dims` as the dimension `$len`, if that is a usual one, so that all is done in
/// registers, or else the most there may be.
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
    /// Round a mixed key of at most [`MAX_HEAD_DIM`] dimensions to codes, four at `to` and every four more sixteen
    /// entries further, and return their scale. It is filled up with zeros to a multiple of sixteen.
    ///
    /// A key that has a NaN or an infinity is zeros with a scale of NaN.
    ///
    /// # Safety
    /// The machine has the level; `to` has room, of which nobody else uses these entries.
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
    /// Round a value to codes as [`write_key`] does a key, but not mixed, each [`QUAD`] bytes from the one before, and
    /// return their scale.
    ///
    /// # Safety
    /// The machine has the level; `to` has room, of which nobody else uses these bytes.
    pub(super) unsafe fn write_value(value: &[f32], to: *mut u8) -> f32 = write_value_body;
}

/// [`quantize`] of four vectors of equally many dimensions.
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
        // Of the first one's length, which callers know when they are compiled.
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
    /// [`write_key`] of four neighbouring tokens' keys of equally many dimensions, a multiple of [`REGISTER_CODES`], in less time.
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
    /// [`write_value`] of four neighbouring tokens' values of equally many dimensions, a multiple of [`REGISTER_CODES`], in less
    /// time.
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
