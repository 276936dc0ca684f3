//! Reading fields of a block.

use half::f16;

/// The little-endian f16 at `at`, widened.
pub(super) fn f16_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// The little-endian f32 at `at`.
pub(super) fn f32_at(block: &[u8], at: usize) -> f32 {
    f32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"))
}

/// The `i`th of 32 nibbles stored in 16 bytes: low halves first, then high halves.
pub(super) fn split_nibble(bytes: &[u8], i: usize) -> u8 {
    if i < 16 {
        bytes[i] & 0x0f
    } else {
        bytes[i - 16] >> 4
    }
}
