//! INT4. Block of 32: `scale: f32, zero: f32, nibbles: [u8; 16]`; weight = scale * (code - zero). No file has it: it is what groups of
//! other checkpoints are unpacked to (`format::grouped`), whose scales may be of any float type.

use super::affine::Group;
use super::blocks::{f32_at, split_nibble};

pub(super) const LEN: usize = 32;
pub(super) const BYTES: usize = 24;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0.iter();
    for (block, out) in blocks.zip(out.as_chunks_mut::<LEN>().0) {
        let (scale, zero) = (f32_at(block, 0), f32_at(block, 4));
        for (i, value) in out.iter_mut().enumerate() {
            *value = scale * (f32::from(split_nibble(&block[8..], i)) - zero);
        }
    }
}

pub(super) fn unpack(block: &[u8], codes: &mut [u8], groups: &mut [Group]) {
    for (i, code) in codes.iter_mut().enumerate() {
        *code = split_nibble(&block[8..], i);
    }
    groups[0] = Group::symmetric(f32_at(block, 0), f32_at(block, 4));
}
