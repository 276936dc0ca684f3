//! IQ4_NL. Block of 32: `scale: f16, nibbles: [u8; 16]`; weight = scale * VALUES[nibble].

use super::affine::Group;
use super::blocks::{f16_at, split_nibble};

pub(super) const LEN: usize = 32;
pub(super) const BYTES: usize = 18;

/// The values of the sixteen nibbles, closer together near zero.
pub const VALUES: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<LEN>().0)
    {
        let scale = f16_at(block, 0);
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
    groups[0] = Group::symmetric(f16_at(block, 0), 128.0);
}

fn signed(block: &[u8], i: usize) -> i8 {
    VALUES[usize::from(split_nibble(&block[2..], i))]
}
