//! IQ4_XS. Block of 256 in eight groups of 32: `d: f16, scales_high: u16, scales_low: [u8; 4], nibbles: [u8; 128]`;
//! weight = (d * (scale - 32)) * VALUES[nibble], scale in 0–63, with the table of IQ4_NL.
//!
//! The scale of group `g` has its low four bits in byte `g / 2` of `scales_low` (low nibble for even groups) and the two above
//! them at bit `2g` of `scales_high`. Each group has 16 bytes of nibbles, as a block of IQ4_NL.

use super::affine::Group;
use super::blocks::{f16_at, split_nibble};
use super::iq4_nl::VALUES;

pub(super) const LEN: usize = 256;
pub(super) const BYTES: usize = 136;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<LEN>().0)
    {
        for (i, value) in out.iter_mut().enumerate() {
            let scale = f16_at(block, 0) * f32::from(scale(block, i / 32));
            *value = scale * f32::from(signed(block, i));
        }
    }
}

/// Codes are the values shifted by 128.
pub(super) fn unpack(block: &[u8], codes: &mut [u8], groups: &mut [Group]) {
    for (i, code) in codes.iter_mut().enumerate() {
        *code = signed(block, i).cast_unsigned() ^ 0x80;
    }
    for (i, slot) in groups.iter_mut().enumerate() {
        *slot = Group::symmetric(f16_at(block, 0) * f32::from(scale(block, i)), 128.0);
    }
}

fn signed(block: &[u8], i: usize) -> i8 {
    let nibbles = &block[8 + i / 32 * 16..];
    VALUES[usize::from(split_nibble(nibbles, i % 32))]
}

/// The scale of group `group`, -32 to 31.
pub(super) fn scale(block: &[u8], group: usize) -> i8 {
    let high = u16::from_le_bytes([block[2], block[3]]);
    let low = block[4 + group / 2] >> (group % 2 * 4) & 15;
    (low | ((high >> (2 * group) & 3) as u8) << 4).cast_signed() - 32
}
