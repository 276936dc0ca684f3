//! Q5_0. Block of 32: `scale: f16, high: u32, nibbles: [u8; 16]`; weight = scale * (code - 16), code in 0–31.
//!
//! Bit `i` of `high` is the fifth bit of code `i`.

use super::affine::Group;
use super::blocks::{f16_at, split_nibble};

pub(super) const LEN: usize = 32;
pub(super) const BYTES: usize = 22;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<LEN>().0)
    {
        let scale = f16_at(block, 0);
        for (i, value) in out.iter_mut().enumerate() {
            *value = scale * (f32::from(code(block, i)) - 16.0);
        }
    }
}

pub(super) fn unpack(block: &[u8], codes: &mut [u8], groups: &mut [Group]) {
    for (i, slot) in codes.iter_mut().enumerate() {
        *slot = code(block, i);
    }
    groups[0] = Group::symmetric(f16_at(block, 0), 16.0);
}

fn code(block: &[u8], i: usize) -> u8 {
    split_nibble(&block[6..], i) | (block[2 + i / 8] >> (i % 8) & 1) << 4
}
