//! Where the keys, values and scales of a tile are.

use super::KvDtype;
use crate::simd::LANES;

/// Byte offsets within a tile, which holds the keys and values of 16 consecutive tokens of a KV head. Keys are at offset 0:
/// `[dimension][16]`, or `[padded dimension / 4][16][4]` codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TileLayout {
    /// `[16]` floats, for types that have scales.
    pub key_scales: usize,
    pub value_scales: usize,
    /// `[16][padded dimension]`, or `[4][padded dimension][4]` codes.
    pub values: usize,
    /// Bytes of the tile.
    pub end: usize,
}

impl TileLayout {
    /// Of heads of at most [`MAX_HEAD_DIM`](crate::spec::MAX_HEAD_DIM) dimensions.
    pub fn new(dtype: KvDtype, head_dim: usize) -> Self {
        let padded = head_dim.next_multiple_of(LANES);
        let key_dims = match dtype {
            KvDtype::F16 | KvDtype::F32 => head_dim,
            KvDtype::Int8 => padded,
        };
        let key_scales = LANES * key_dims * dtype.bytes();
        let value_scales = key_scales + LANES * dtype.scale_bytes();
        let values = value_scales + LANES * dtype.scale_bytes();
        Self {
            key_scales,
            value_scales,
            values,
            end: values + LANES * padded * dtype.bytes(),
        }
    }
}
