//! Q6_K. Block of 256 in sixteen groups of 16: `low: [u8; 128], high: [u8; 64], scales: [i8; 16],
//! d: f16`; weight = (d * scale) * (code - 32), code in 0–63.
//!
//! Each half of 128 weights uses 64 bytes of `low` and 32 of `high`. Its quarter `q` (32 weights) takes
//! low nibbles (q < 2) or high nibbles (q ≥ 2) of `low[32 * (q % 2) + lane]`, and bits `2q, 2q + 1` of
//! `high[lane]` above them.

use super::affine::Group;
use super::blocks::f16_at;

pub(super) const LEN: usize = 256;
pub(super) const BYTES: usize = 210;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<LEN>().0)
    {
        for (i, value) in out.iter_mut().enumerate() {
            *value = scale(block, i / 16) * (f32::from(code(block, i)) - 32.0);
        }
    }
}

pub(super) fn unpack(block: &[u8], codes: &mut [u8], groups: &mut [Group]) {
    for (i, slot) in codes.iter_mut().enumerate() {
        *slot = code(block, i);
    }
    for (i, slot) in groups.iter_mut().enumerate() {
        let scale = scale(block, i);
        *slot = Group {
            scale,
            min: -32.0 * scale,
        };
    }
}

fn code(block: &[u8], i: usize) -> u8 {
    let (half, quarter, lane) = (i / 128, i % 128 / 32, i % 32);
    let byte = block[half * 64 + quarter % 2 * 32 + lane];
    let low = if quarter < 2 { byte & 0x0f } else { byte >> 4 };
    let high = block[128 + half * 32 + lane] >> (2 * quarter) & 3;
    low | high << 4
}

fn scale(block: &[u8], group: usize) -> f32 {
    f16_at(block, 208) * f32::from(block[192 + group].cast_signed())
}
