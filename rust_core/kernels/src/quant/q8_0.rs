//! Q8_0. Block of 32: `scale: f16, codes: [i8; 32]`; weight = scale * code.

use super::affine::Group;
use super::blocks::f16_at;

pub(super) const LEN: usize = 32;
pub(super) const BYTES: usize = 34;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<LEN>().0)
    {
        let scale = f16_at(block, 0);
        for (value, &code) in out.iter_mut().zip(&block[2..]) {
            *value = scale * f32::from(code.cast_signed());
        }
    }
}

/// Codes shifted by 128 to be unsigned.
pub(super) fn unpack(block: &[u8], codes: &mut [u8], groups: &mut [Group]) {
    let scale = f16_at(block, 0);
    for (code, &signed) in codes.iter_mut().zip(&block[2..]) {
        *code = signed ^ 0x80;
    }
    groups[0] = Group {
        scale,
        min: -128.0 * scale,
    };
}
