//! The scales of a K-quant's block as the file stores them: small integers and their f16 factors.

use half::f16;

use super::{DType, iq4_xs, q2_k, q3_k, six_bit_scales};

/// Scales and minima of a block: group `g` has scale `scale_factor * scales[g]` and minimum `-min_factor * mins[g]`.
///
/// Entries beyond the block's groups are 0, as are the minima of formats without them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockScales {
    pub scale_factor: f16,
    pub min_factor: f16,
    /// One for each group of [`super::group_size`] weights.
    pub scales: [i8; 16],
    pub mins: [i8; 16],
}

/// The scales of `block`, which is one block of `dtype`.
///
/// # Panics
/// If `dtype` has no blocks of 256, or `block` is not one block.
pub fn block_scales(dtype: DType, block: &[u8]) -> BlockScales {
    assert_eq!(block.len(), dtype.block_bytes());
    let factor = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]);
    let (mut scales, mut mins) = ([0; 16], [0; 16]);
    match dtype {
        DType::Q4K | DType::Q5K => {
            for group in 0..8 {
                let (scale, min) = six_bit_scales::scale_and_min(&block[4..16], group);
                (scales[group], mins[group]) = (scale.cast_signed(), min.cast_signed());
            }
            BlockScales {
                scale_factor: factor(0),
                min_factor: factor(2),
                scales,
                mins,
            }
        }
        DType::Q6K => {
            for (to, from) in scales.iter_mut().zip(&block[192..208]) {
                *to = from.cast_signed();
            }
            BlockScales {
                scale_factor: factor(208),
                min_factor: f16::ZERO,
                scales,
                mins,
            }
        }
        DType::Q3K => BlockScales {
            scale_factor: factor(108),
            min_factor: f16::ZERO,
            scales: std::array::from_fn(|group| q3_k::scale(block, group)),
            mins,
        },
        DType::Q2K => {
            for group in 0..16 {
                let (scale, min) = q2_k::scale_and_min(block, group);
                (scales[group], mins[group]) = (scale.cast_signed(), min.cast_signed());
            }
            BlockScales {
                scale_factor: factor(80),
                min_factor: factor(82),
                scales,
                mins,
            }
        }
        DType::IQ4XS => {
            for (group, slot) in scales[..8].iter_mut().enumerate() {
                *slot = iq4_xs::scale(block, group);
            }
            BlockScales {
                scale_factor: factor(0),
                min_factor: f16::ZERO,
                scales,
                mins,
            }
        }
        _ => panic!("{} has no blocks of scales", dtype.name()),
    }
}
