//! Q5_K. Block of 256 in eight groups of 32: `d: f16, dmin: f16, scales: [u8; 12], high: [u8; 32],
//! nibbles: [u8; 128]`; weight = (d * scale) * code - dmin * min, code in 0–31.
//!
//! Nibbles are laid out as in Q4_K; bit `g` of `high[lane]` is the fifth bit of group `g`'s code.

use super::affine::Group;
use super::blocks::f16_at;
use super::six_bit_scales::scale_and_min;

pub(super) const LEN: usize = 256;
pub(super) const BYTES: usize = 176;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<LEN>().0)
    {
        for (i, value) in out.iter_mut().enumerate() {
            let Group { scale, min } = group(block, i / 32);
            *value = scale * f32::from(code(block, i)) + min;
        }
    }
}

pub(super) fn unpack(block: &[u8], codes: &mut [u8], groups: &mut [Group]) {
    for (i, slot) in codes.iter_mut().enumerate() {
        *slot = code(block, i);
    }
    for (i, slot) in groups.iter_mut().enumerate() {
        *slot = group(block, i);
    }
}

fn code(block: &[u8], i: usize) -> u8 {
    let (group, lane) = (i / 32, i % 32);
    let byte = block[48 + group / 2 * 32 + lane];
    let low = if group.is_multiple_of(2) {
        byte & 0x0f
    } else {
        byte >> 4
    };
    low | (block[16 + lane] >> group & 1) << 4
}

fn group(block: &[u8], group: usize) -> Group {
    let (scale, min) = scale_and_min(&block[4..16], group);
    Group {
        scale: f16_at(block, 0) * f32::from(scale),
        min: -(f16_at(block, 2) * f32::from(min)),
    }
}
