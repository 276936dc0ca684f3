//! Q2_K. Block of 256 in sixteen groups of 16: `scales: [u8; 16], codes: [u8; 64], d: f16, dmin: f16`;
//! weight = (d * scale) * code - dmin * min, code in 0–3. Of `scales[g]`, the low nibble is the scale of group `g`, the high one
//! its minimum.
//!
//! Each half of 128 weights uses 32 bytes of `codes`; its quarter `q` (32 weights) takes bits `2q, 2q + 1` of byte `lane`.

use super::affine::Group;
use super::blocks::f16_at;

pub(super) const LEN: usize = 256;
pub(super) const BYTES: usize = 84;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<LEN>().0)
    {
        for (i, value) in out.iter_mut().enumerate() {
            let Group { scale, min } = group(block, i / 16);
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
    let (half, quarter, lane) = (i / 128, i % 128 / 32, i % 32);
    block[16 + half * 32 + lane] >> (2 * quarter) & 3
}

/// Scale and minimum of group `group`, each 0–15.
pub(super) fn scale_and_min(block: &[u8], group: usize) -> (u8, u8) {
    (block[group] & 0x0f, block[group] >> 4)
}

fn group(block: &[u8], group: usize) -> Group {
    let (scale, min) = scale_and_min(block, group);
    Group {
        scale: f16_at(block, 80) * f32::from(scale),
        min: -(f16_at(block, 82) * f32::from(min)),
    }
}
