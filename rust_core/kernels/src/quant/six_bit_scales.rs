//! The 12 bytes that hold eight 6-bit scales and eight 6-bit minima in Q4_K and Q5_K blocks.
//!
//! Bytes 0–3 hold scales 0–3 in their low six bits and the top two bits of scales 4–7 above them;
//! bytes 4–7 the same for minima; bytes 8–11 hold the low four bits of scales 4–7 (low nibble) and of
//! minima 4–7 (high nibble).

/// Scale and minimum of group `group`, each 0–63.
pub(super) fn scale_and_min(packed: &[u8], group: usize) -> (u8, u8) {
    if group < 4 {
        (packed[group] & 0x3f, packed[group + 4] & 0x3f)
    } else {
        let low = packed[group + 4];
        let scale = (low & 0x0f) | (packed[group - 4] >> 6) << 4;
        let min = (low >> 4) | (packed[group] >> 6) << 4;
        (scale, min)
    }
}
