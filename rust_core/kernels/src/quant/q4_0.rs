//! Q4_0. Block of 32: `scale: f16, nibbles: [u8; 16]`; weight = scale * (code - 8).

use super::affine::Group;
use super::blocks::{f16_at, split_nibble};

pub(super) const LEN: usize = 32;
pub(super) const BYTES: usize = 18;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<LEN>().0)
    {
        let scale = f16_at(block, 0);
        for (i, value) in out.iter_mut().enumerate() {
            *value = scale * (f32::from(split_nibble(&block[2..], i)) - 8.0);
        }
    }
}

pub(super) fn unpack(block: &[u8], codes: &mut [u8], groups: &mut [Group]) {
    let scale = f16_at(block, 0);
    for (i, code) in codes.iter_mut().enumerate() {
        *code = split_nibble(&block[2..], i);
    }
    groups[0] = Group {
        scale,
        min: -8.0 * scale,
    };
}
