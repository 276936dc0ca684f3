//! Q3_K. Block of 256 in sixteen groups of 16: `high: [u8; 32], low: [u8; 64], scales: [u8; 12], d: f16`;
//! weight = (d * (scale - 32)) * (code - 4), code in 0–7, scale in 0–63.
//!
//! Each half of 128 weights uses 32 bytes of `low`; its quarter `q` (32 weights) takes bits `2q, 2q + 1` of byte `lane`. Bit
//! `g` of `high[lane]` is the third bit of weight `32g + lane`. Of the scales, byte `i % 8` holds the low four bits of scale
//! `i` (low nibble for i < 8), and byte `8 + i % 4` the two bits above them at `2 (i / 4)`.

use super::affine::Group;
use super::blocks::f16_at;

pub(super) const LEN: usize = 256;
pub(super) const BYTES: usize = 110;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<LEN>().0)
    {
        let factor = f16_at(block, 108);
        for (i, value) in out.iter_mut().enumerate() {
            let scale = factor * f32::from(scale(block, i / 16));
            *value = scale * (f32::from(code(block, i)) - 4.0);
        }
    }
}

pub(super) fn unpack(block: &[u8], codes: &mut [u8], groups: &mut [Group]) {
    for (i, slot) in codes.iter_mut().enumerate() {
        *slot = code(block, i);
    }
    for (i, slot) in groups.iter_mut().enumerate() {
        *slot = Group::symmetric(f16_at(block, 108) * f32::from(scale(block, i)), 4.0);
    }
}

fn code(block: &[u8], i: usize) -> u8 {
    let (half, quarter, lane) = (i / 128, i % 128 / 32, i % 32);
    let low = block[32 + half * 32 + lane] >> (2 * quarter) & 3;
    low | (block[lane] >> (i / 32) & 1) << 2
}

/// The scale of group `group`, -32 to 31.
pub(super) fn scale(block: &[u8], group: usize) -> i8 {
    let packed = &block[96..108];
    let low = packed[group % 8] >> (group / 8 * 4) & 15;
    let high = packed[8 + group % 4] >> (group / 4 * 2) & 3;
    (low | high << 4).cast_signed() - 32
}
