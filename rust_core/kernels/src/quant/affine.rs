//! The affine view: `weight = scale * code + min` with unsigned codes, for every quantised format.
//!
//! Weights are packed from this view, so the kernels support four code widths, whatever the order of the file's bits.

use super::{
    DType, int4, iq4_nl, iq4_xs, mxfp4, q2_k, q3_k, q4_0, q4_1, q4_k, q5_0, q5_1, q5_k, q6_k, q8_0,
};

/// Scale and minimum of one group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Group {
    pub(super) scale: f32,
    pub(super) min: f32,
}

impl Group {
    /// A group whose weights are `scale * (code - zero)`.
    pub(super) fn symmetric(scale: f32, zero: f32) -> Self {
        Self {
            scale,
            min: -zero * scale,
        }
    }
}

/// Largest number of groups per block (Q2_K, Q3_K, Q6_K).
const MAX_GROUPS: usize = 16;

/// Weights that share a scale and a minimum.
///
/// # Panics
/// If `dtype` is not quantised.
pub fn group_size(dtype: DType) -> usize {
    match dtype {
        DType::Q8_0
        | DType::Q4_0
        | DType::Q4_1
        | DType::Int4
        | DType::Q5_0
        | DType::Q5_1
        | DType::IQ4NL
        | DType::MXFP4
        | DType::Q4K
        | DType::Q5K
        | DType::IQ4XS => 32,
        DType::Q2K | DType::Q3K | DType::Q6K => 16,
        DType::F32 | DType::F16 | DType::BF16 => panic!("{} has no groups", dtype.name()),
    }
}

/// Width of the unpacked codes of `dtype` in bits: 2 to 6, or 8. Codes that index a table are unpacked to its values, shifted by
/// 128.
///
/// # Panics
/// If `dtype` is not quantised.
pub fn code_bits(dtype: DType) -> u32 {
    match dtype {
        DType::Q2K => 2,
        DType::Q3K => 3,
        DType::Q4_0 | DType::Q4_1 | DType::Int4 | DType::Q4K => 4,
        DType::Q5_0 | DType::Q5_1 | DType::Q5K => 5,
        DType::Q6K => 6,
        DType::Q8_0 | DType::IQ4NL | DType::IQ4XS | DType::MXFP4 => 8,
        DType::F32 | DType::F16 | DType::BF16 => panic!("{} has no codes", dtype.name()),
    }
}

/// Unpacks one row of `cols` weights.
///
/// * `codes`: `[cols]`, one code per byte, in the order of the weights.
/// * `scales`, `mins`: `[cols / group_size(dtype)]`.
///
/// Codes, scales and minima are exact, so only the order of float operations differs from
/// [`super::dequantize_row`].
///
/// # Panics
/// If `dtype` is not quantised or a length does not fit `cols`.
pub fn unpack_row_affine(
    dtype: DType,
    row_bytes: &[u8],
    cols: usize,
    codes: &mut [u8],
    scales: &mut [f32],
    mins: &mut [f32],
) {
    let group_size = group_size(dtype);
    let (block_len, block_bytes) = (dtype.block_len(), dtype.block_bytes());
    assert_eq!(
        cols % block_len,
        0,
        "rows hold whole {} blocks",
        dtype.name()
    );
    assert_eq!(row_bytes.len(), cols / block_len * block_bytes);
    assert_eq!(codes.len(), cols);
    assert_eq!(
        (scales.len(), mins.len()),
        (cols / group_size, cols / group_size)
    );
    let unpack = match dtype {
        DType::Q8_0 => q8_0::unpack,
        DType::Q4_0 => q4_0::unpack,
        DType::Q4_1 => q4_1::unpack,
        DType::Int4 => int4::unpack,
        DType::Q5_0 => q5_0::unpack,
        DType::Q5_1 => q5_1::unpack,
        DType::IQ4NL => iq4_nl::unpack,
        DType::MXFP4 => mxfp4::unpack,
        DType::Q2K => q2_k::unpack,
        DType::Q3K => q3_k::unpack,
        DType::Q4K => q4_k::unpack,
        DType::Q5K => q5_k::unpack,
        DType::Q6K => q6_k::unpack,
        DType::IQ4XS => iq4_xs::unpack,
        DType::F32 | DType::F16 | DType::BF16 => unreachable!("group_size refused floats"),
    };
    let groups_per_block = block_len / group_size;
    let blocks = row_bytes
        .chunks_exact(block_bytes)
        .zip(codes.chunks_exact_mut(block_len));
    for (at, (block, codes)) in blocks.enumerate() {
        let mut groups = [Group::default(); MAX_GROUPS];
        unpack(block, codes, &mut groups[..groups_per_block]);
        for (i, group) in groups[..groups_per_block].iter().enumerate() {
            scales[at * groups_per_block + i] = group.scale;
            mins[at * groups_per_block + i] = group.min;
        }
    }
}
