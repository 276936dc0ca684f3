//! One KV head of one layer: addresses of its tokens in every block, and writing keys and values.

use super::codes::{write_key, write_keys, write_value, write_values};
use super::{KvDtype, KvLayer, QUAD};
use crate::dispatch::Level;
use crate::simd::{LANES, REGISTER_CODES, prefetch_for_writing};

/// One KV head of one layer: its part of every block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KvHead<'a> {
    pub(super) layer: &'a KvLayer,
    /// Its part of block 0.
    pub(super) first: *mut u8,
    /// Bytes between its parts of consecutive blocks.
    pub(super) block_stride: usize,
}

impl KvHead<'_> {
    /// The tile that holds token `slot` of a block: see [`super::TileLayout`].
    #[inline(always)]
    pub fn tile(&self, block: usize, slot: usize) -> *mut u8 {
        assert!(block < self.layer.blocks && slot < self.layer.block_size);
        let at = block * self.block_stride + slot / LANES * self.layer.tile_layout().end;
        // SAFETY: inside the head's part of the block by the check.
        unsafe { self.first.add(at) }
    }

    /// Prefetch, for writing, the keys or the values of the tile that holds token `slot` of a block.
    pub fn prefetch_tile(&self, block: usize, slot: usize, keys: bool) {
        let (tile, layout) = (self.tile(block, slot), self.layer.tile_layout());
        let (numbers, scales) = if keys {
            (0..layout.key_scales, layout.key_scales)
        } else {
            (layout.values..layout.end, layout.value_scales)
        };
        for at in numbers.step_by(64).chain([scales]) {
            prefetch_for_writing(tile.wrapping_add(at));
        }
    }

    /// Write a token's key.
    ///
    /// # Safety
    /// The machine has the level. No other thread accesses this slot during the call.
    pub unsafe fn write_key(&self, level: Level, block: usize, slot: usize, key: &[f32]) {
        assert_eq!(key.len(), self.layer.head_dim);
        let (keys, lane) = (self.tile(block, slot), slot % LANES);
        // SAFETY: lane `lane` of each dimension is inside the tile; exclusive by contract.
        unsafe {
            match self.layer.dtype {
                KvDtype::F16 => store_f16(key, |dim| dim * LANES + lane, keys),
                KvDtype::F32 => store_f32(key, |dim| dim * LANES + lane, keys),
                KvDtype::Int8 => {
                    let scale = write_key(level, key, keys.cast::<[u8; QUAD]>().add(lane));
                    let scales = keys.add(self.layer.tile_layout().key_scales);
                    *scales.cast::<f32>().add(lane) = scale;
                }
            }
        }
    }

    /// Write a token's value.
    ///
    /// # Safety
    /// The machine has the level. No other thread accesses this slot during the call.
    pub unsafe fn write_value(&self, level: Level, block: usize, slot: usize, value: &[f32]) {
        assert_eq!(value.len(), self.layer.head_dim);
        let (tile, lane) = (self.tile(block, slot), slot % LANES);
        let (layout, stride) = (self.layer.tile_layout(), self.layer.value_stride());
        // SAFETY: every dimension of lane `lane` is inside the tile; exclusive by contract.
        unsafe {
            let values = tile.add(layout.values);
            match self.layer.dtype {
                KvDtype::F16 => store_f16(value, |dim| lane * stride + dim, values),
                KvDtype::F32 => store_f32(value, |dim| lane * stride + dim, values),
                KvDtype::Int8 => {
                    let to = values.add(lane / QUAD * stride * QUAD + lane % QUAD);
                    let scale = write_value(level, value, to);
                    let scales = tile.add(layout.value_scales);
                    *scales.cast::<f32>().add(lane) = scale;
                }
            }
        }
    }

    /// Whether keys and values of four consecutive tokens, the first in slot `slot`, can be written together.
    pub fn can_write_four_from(&self, slot: usize) -> bool {
        let layer = self.layer;
        layer.dtype == KvDtype::Int8
            && slot.is_multiple_of(QUAD)
            && layer.head_dim.is_multiple_of(REGISTER_CODES)
    }

    /// [`KvHead::write_key`] for four consecutive tokens: see [`KvHead::can_write_four_from`].
    ///
    /// # Safety
    /// As [`KvHead::write_key`], of all four slots.
    pub unsafe fn write_keys(&self, level: Level, block: usize, slot: usize, keys: [&[f32]; QUAD]) {
        assert!(self.can_write_four_from(slot));
        assert!(keys.iter().all(|key| key.len() == self.layer.head_dim));
        let (tile, lane) = (self.tile(block, slot), slot % LANES);
        // SAFETY: four lanes from `lane` on of each dimension are inside the tile; exclusive by contract.
        unsafe {
            let scales = write_keys(level, keys, tile.cast::<[u8; QUAD]>().add(lane));
            let to = tile.add(self.layer.tile_layout().key_scales);
            *to.cast::<f32>().add(lane).cast::<[f32; QUAD]>() = scales;
        }
    }

    /// [`KvHead::write_value`] for four consecutive tokens: see [`KvHead::can_write_four_from`].
    ///
    /// # Safety
    /// As [`KvHead::write_value`], of all four slots.
    pub unsafe fn write_values(
        &self,
        level: Level,
        block: usize,
        slot: usize,
        values: [&[f32]; QUAD],
    ) {
        assert!(self.can_write_four_from(slot));
        assert!(
            values
                .iter()
                .all(|value| value.len() == self.layer.head_dim)
        );
        let (tile, lane) = (self.tile(block, slot), slot % LANES);
        let (layout, stride) = (self.layer.tile_layout(), self.layer.value_stride());
        // SAFETY: every dimension of four lanes from `lane` on is inside the tile; exclusive by contract.
        unsafe {
            let to = tile.add(layout.values).cast::<[u8; QUAD]>();
            let scales = write_values(level, values, to.add(lane / QUAD * stride));
            let to = tile.add(layout.value_scales).cast::<f32>().add(lane);
            *to.cast::<[f32; QUAD]>() = scales;
        }
    }
}

/// Store a vector as f16, dimension `dim` as element `at(dim)` of `base`.
///
/// # Safety
/// Each of these elements is inside the arena, and no other thread accesses it; the arena is aligned for every type.
#[inline(always)]
unsafe fn store_f16(vector: &[f32], at: impl Fn(usize) -> usize, base: *mut u8) {
    for (dim, &x) in vector.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { *base.cast::<u16>().add(at(dim)) = narrow_f16(x) };
    }
}

/// The same as f32.
///
/// # Safety
/// As [`store_f16`].
#[inline(always)]
unsafe fn store_f32(vector: &[f32], at: impl Fn(usize) -> usize, base: *mut u8) {
    for (dim, &x) in vector.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { *base.cast::<f32>().add(at(dim)) = x };
    }
}

/// Round f32 to f16, to nearest even, without a branch, so that loops over it vectorise.
#[inline(always)]
fn narrow_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // f16 subnormals: adding 0.5 shifts their bits, rounded, to the bottom of the mantissa.
    let small = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0.5f32.to_bits());
    // f16 normals: the exponent bias changes by 112; add half a step, less one if the last bit is even.
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    let special = if magnitude > 0x7f80_0000 {
        0x7e00
    } else {
        0x7c00
    };
    let half = if magnitude < 113 << 23 {
        small
    } else if magnitude < 143 << 23 {
        // Rounding up past the largest f16 gives infinity without a special case.
        normal
    } else {
        special
    };
    (half | bits >> 16 & 0x8000) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_is_rounded_as_the_reference_does() {
        let same = |x: f32| {
            let reference = half::f16::from_f32(x);
            let ours = half::f16::from_bits(narrow_f16(x));
            assert!(
                ours.to_bits() == reference.to_bits() || ours.is_nan() && reference.is_nan(),
                "{x}: {ours} {reference}"
            );
        };
        for high in 0..=u16::MAX {
            for low in [0, 1, 0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0xffff] {
                same(f32::from_bits(u32::from(high) << 16 | low));
            }
        }
    }
}
