//! F32, F16 and BF16: plain little-endian values.

use half::bf16;

use crate::simd::widen_f16;

pub(super) fn dequantize_f32(bytes: &[u8], out: &mut [f32]) {
    for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *value = f32::from_le_bytes(*raw);
    }
}

pub(super) fn dequantize_f16(bytes: &[u8], out: &mut [f32]) {
    for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *value = widen_f16(u16::from_le_bytes(*raw));
    }
}

pub(super) fn dequantize_bf16(bytes: &[u8], out: &mut [f32]) {
    for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *value = bf16::from_le_bytes(*raw).to_f32();
    }
}
