//! MXFP4. Block of 32: `exponent: u8, nibbles: [u8; 16]`; weight = 2^(exponent - 128) * VALUES[nibble].
//!
//! The nibbles are 4-bit floats (E2M1) and the exponent is a power of two without mantissa (E8M0). The table holds twice the
//! floats, which makes them integers, and the scale half the power of two.

use super::affine::Group;
use super::blocks::split_nibble;

pub(super) const LEN: usize = 32;
pub(super) const BYTES: usize = 17;

/// Twice the values of the sixteen nibbles.
pub const VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<LEN>().0)
    {
        let scale = scale(block[0]);
        for (i, value) in out.iter_mut().enumerate() {
            *value = scale * f32::from(signed(block, i));
        }
    }
}

/// Codes are the values shifted by 128.
pub(super) fn unpack(block: &[u8], codes: &mut [u8], groups: &mut [Group]) {
    for (i, code) in codes.iter_mut().enumerate() {
        *code = signed(block, i).cast_unsigned() ^ 0x80;
    }
    groups[0] = Group::symmetric(scale(block[0]), 128.0);
}

fn signed(block: &[u8], i: usize) -> i8 {
    VALUES[usize::from(split_nibble(&block[1..], i))]
}

/// `2^(exponent - 128)`: a power of two beyond the range of f16, and a subnormal f32 for the two smallest exponents. As ggml
/// does, 255 is read as a number, not as NaN.
fn scale(exponent: u8) -> f32 {
    f32::from_bits(match exponent {
        0 | 1 => 0x0020_0000 << exponent,
        _ => (u32::from(exponent) - 1) << 23,
    })
}
