//! Weight formats: block layouts, reference dequantisation and the affine view.
//!
//! Code here favours clarity over speed: kernels use weights repacked once at load
//! through [`unpack_row_affine`], and tests compare them with [`dequantize_row`].
//!
//! A *block* is the unit of storage; a *row* is whole blocks. A *group* is a run of weights that share
//! one scale and one minimum: every quantised format here is, without loss,
//! `weight = scale * code + min` with unsigned codes.

mod affine;
mod block_scales;
mod blocks;
mod dtype;
mod float;
mod int4;
mod iq4_nl;
mod iq4_xs;
mod mxfp4;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod six_bit_scales;

pub use affine::{code_bits, group_size, unpack_row_affine};
pub use block_scales::{BlockScales, block_scales};
pub use dtype::DType;
pub use iq4_nl::VALUES as IQ4_VALUES;
pub use mxfp4::VALUES as FP4_VALUES;

/// Decodes one row (or any run of whole blocks) to f32.
///
/// # Panics
/// If `bytes` and `out` do not describe the same number of whole blocks.
pub fn dequantize_row(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    assert_eq!(
        out.len() % dtype.block_len(),
        0,
        "rows hold whole {} blocks",
        dtype.name()
    );
    assert_eq!(
        bytes.len(),
        out.len() / dtype.block_len() * dtype.block_bytes()
    );
    match dtype {
        DType::F32 => float::dequantize_f32(bytes, out),
        DType::F16 => float::dequantize_f16(bytes, out),
        DType::BF16 => float::dequantize_bf16(bytes, out),
        DType::Q8_0 => q8_0::dequantize(bytes, out),
        DType::Q4_0 => q4_0::dequantize(bytes, out),
        DType::Q4_1 => q4_1::dequantize(bytes, out),
        DType::Int4 => int4::dequantize(bytes, out),
        DType::Q5_0 => q5_0::dequantize(bytes, out),
        DType::Q5_1 => q5_1::dequantize(bytes, out),
        DType::IQ4NL => iq4_nl::dequantize(bytes, out),
        DType::MXFP4 => mxfp4::dequantize(bytes, out),
        DType::Q2K => q2_k::dequantize(bytes, out),
        DType::Q3K => q3_k::dequantize(bytes, out),
        DType::Q4K => q4_k::dequantize(bytes, out),
        DType::Q5K => q5_k::dequantize(bytes, out),
        DType::Q6K => q6_k::dequantize(bytes, out),
        DType::IQ4XS => iq4_xs::dequantize(bytes, out),
    }
}

#[cfg(test)]
mod tests;
