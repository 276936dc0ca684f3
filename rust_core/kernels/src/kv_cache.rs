//! The paged KV cache: blocks laid out for the attention kernel.
//!
//! A block of a layer holds, for each KV head, its tokens in tiles of 16: keys, then values. Keys stand
//! `[dimension][16]`, so that one vector of 16 scores grows by one multiply-add a dimension with
//! no horizontal sum. Values stand token by token, `[token][padded dimension]`. Bytes of slots that no
//! token has been written to are whatever they were: readers mask them.
//!
//! As int8 a token's key and value have one f32 scale each a head, `x ≈ scale * (code - 128)`, and dot products of
//! bytes take four inputs at once: keys stand `[padded dimension / 4][16][4]`, values `[token / 4][padded dimension][4]`. Between
//! keys and values stand the scales of 16 keys and of 16 values: they go into scores and weights, which are
//! vectors over tokens.

mod block_copy;

use crate::arena::Arena;
use crate::error::KernelError;
use crate::simd::{LANES, ROUND};

/// Element type of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvDtype {
    F16,
    F32,
    /// With a scale for each token and head.
    Int8,
}

impl KvDtype {
    pub fn parse(name: &str) -> Result<Self, KernelError> {
        match name {
            "f16" => Ok(Self::F16),
            "f32" => Ok(Self::F32),
            "int8" => Ok(Self::Int8),
            _ => Err(KernelError::config(format!(
                "There is no KV cache type {name:?}: choose f16, f32 or int8."
            ))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::Int8 => "int8",
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 => 4,
            Self::Int8 => 1,
        }
    }

    /// Bytes of a vector's scale.
    pub fn scale_bytes(self) -> usize {
        match self {
            Self::F16 | Self::F32 => 0,
            Self::Int8 => size_of::<f32>(),
        }
    }
}

/// Sizes of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvShape {
    pub dtype: KvDtype,
    pub layers: usize,
    pub blocks: usize,
    /// Tokens in a block; a multiple of 16.
    pub block_size: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
}

/// Inputs of a dot product of bytes.
pub(crate) const QUAD: usize = 4;

/// Stands for zero among int8 codes, which are unsigned.
pub(crate) const ZERO_CODE: u8 = 128;

impl KvShape {
    fn padded_dim(&self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }

    /// Bytes of a tile's keys.
    fn key_bytes(&self) -> usize {
        let dims = match self.dtype {
            KvDtype::F16 | KvDtype::F32 => self.head_dim,
            KvDtype::Int8 => self.padded_dim(),
        };
        LANES * dims * self.dtype.bytes()
    }

    /// Bytes of the scales of a tile's keys, and of those of its values.
    fn scale_bytes(&self) -> usize {
        LANES * self.dtype.scale_bytes()
    }

    /// What a tile is made of.
    pub(crate) fn tile_layout(&self) -> TileLayout {
        let key_scales = self.key_bytes();
        let value_scales = key_scales + self.scale_bytes();
        TileLayout {
            key_scales,
            value_scales,
            values: value_scales + self.scale_bytes(),
        }
    }

    /// Bytes of a tile up to the end of its first `tokens` tokens' values.
    pub(crate) fn bytes_of(&self, tokens: usize) -> usize {
        let tokens = match self.dtype {
            KvDtype::F16 | KvDtype::F32 => tokens,
            KvDtype::Int8 => LANES,
        };
        self.tile_layout().values + tokens * self.padded_dim() * self.dtype.bytes()
    }

    /// Bytes of one KV head's part of a block of one layer.
    fn head_bytes(&self) -> usize {
        self.block_size / LANES * self.bytes_of(LANES)
    }

    fn layer_bytes(&self) -> Option<usize> {
        self.head_bytes()
            .checked_mul(self.kv_heads)?
            .checked_mul(self.blocks)
    }
}

/// Where in a tile, the keys and values of sixteen neighbouring tokens of a KV head, things stand, in bytes. Keys are first:
/// `[dimension][16]`, or `[padded dimension / 4][16][4]` codes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TileLayout {
    /// `[16]` floats, for types that have scales.
    pub key_scales: usize,
    pub value_scales: usize,
    /// `[16][padded dimension]`, or `[4][padded dimension][4]` codes.
    pub values: usize,
}

/// Storage of every block of every layer.
#[derive(Debug)]
pub struct KvCache {
    shape: KvShape,
    arena: Arena,
    layer_bytes: usize,
}

impl KvCache {
    /// Reserve the pool. Its pages take memory when tokens are first written to them.
    pub fn new(shape: KvShape) -> Result<Self, KernelError> {
        if shape.block_size == 0 || !shape.block_size.is_multiple_of(LANES) {
            return Err(KernelError::config(format!(
                "A KV block of {} tokens is not possible: choose a multiple of {LANES}.",
                shape.block_size
            )));
        }
        if shape.blocks == 0 || shape.blocks > i32::MAX as usize {
            return Err(KernelError::config(format!(
                "A KV pool of {} blocks is not possible.",
                shape.blocks
            )));
        }
        let too_large = || KernelError::Memory("The KV pool would not fit in memory.".into());
        let layer_bytes = shape.layer_bytes().ok_or_else(too_large)?;
        let total = layer_bytes
            .checked_mul(shape.layers)
            .ok_or_else(too_large)?;
        Ok(Self {
            shape,
            arena: Arena::new(total)?,
            layer_bytes,
        })
    }

    /// Give the pool its memory now, not at its first use.
    pub fn touch(&mut self) {
        for page in (0..self.arena.len()).step_by(4096) {
            // SAFETY: inside the arena, which nobody else uses meanwhile.
            unsafe {
                let byte = self.arena.as_ptr().add(page);
                byte.write_volatile(byte.read());
            }
        }
    }

    pub fn shape(&self) -> &KvShape {
        &self.shape
    }

    /// One KV head of one layer.
    #[inline(always)]
    pub(crate) fn head(&self, layer: usize, kv_head: usize) -> KvHead<'_> {
        let shape = &self.shape;
        assert!(layer < shape.layers && kv_head < shape.kv_heads);
        let head_bytes = shape.head_bytes();
        // SAFETY: inside the arena by the check.
        let first = unsafe {
            let layer = self.arena.as_ptr().add(layer * self.layer_bytes);
            layer.add(kv_head * head_bytes)
        };
        KvHead {
            shape,
            first,
            block_stride: shape.kv_heads * head_bytes,
            tile_bytes: shape.bytes_of(LANES),
        }
    }

    /// Elements from one token's value to the next.
    pub(crate) fn value_stride(&self) -> usize {
        self.shape.padded_dim()
    }
}

/// One KV head of one layer: its part of every block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KvHead<'a> {
    shape: &'a KvShape,
    /// Its part of block 0.
    first: *mut u8,
    /// Bytes from its part of a block to that of the next one.
    block_stride: usize,
    tile_bytes: usize,
}

impl KvHead<'_> {
    /// The tile that holds token `slot` of a block: see [`TileLayout`].
    #[inline(always)]
    pub fn tile(&self, block: usize, slot: usize) -> *mut u8 {
        assert!(block < self.shape.blocks && slot < self.shape.block_size);
        let at = block * self.block_stride + slot / LANES * self.tile_bytes;
        // SAFETY: inside the head's part of the block by the check.
        unsafe { self.first.add(at) }
    }

    /// Write a token's key.
    ///
    /// # Safety
    /// Nobody else reads or writes this slot meanwhile.
    pub unsafe fn write_key(&self, block: usize, slot: usize, key: &[f32]) {
        assert_eq!(key.len(), self.shape.head_dim);
        let (keys, lane) = (self.tile(block, slot), slot % LANES);
        // SAFETY: lane `lane` of each dimension is inside the tile; exclusive by contract.
        unsafe {
            match self.shape.dtype {
                KvDtype::F16 => store_f16(key, |dim| dim * LANES + lane, keys),
                KvDtype::F32 => store_f32(key, |dim| dim * LANES + lane, keys),
                KvDtype::Int8 => {
                    let at = |dim| (dim / QUAD * LANES + lane) * QUAD + dim % QUAD;
                    let scales = keys.add(self.shape.tile_layout().key_scales);
                    *scales.cast::<f32>().add(lane) = store_codes(key, at, keys);
                }
            }
        }
    }

    /// Write a token's value.
    ///
    /// # Safety
    /// Nobody else reads or writes this slot meanwhile.
    pub unsafe fn write_value(&self, block: usize, slot: usize, value: &[f32]) {
        assert_eq!(value.len(), self.shape.head_dim);
        let (tile, lane) = (self.tile(block, slot), slot % LANES);
        let (layout, stride) = (self.shape.tile_layout(), self.shape.padded_dim());
        // SAFETY: every dimension of lane `lane` is inside the tile; exclusive by contract.
        unsafe {
            let values = tile.add(layout.values);
            match self.shape.dtype {
                KvDtype::F16 => store_f16(value, |dim| lane * stride + dim, values),
                KvDtype::F32 => store_f32(value, |dim| lane * stride + dim, values),
                KvDtype::Int8 => {
                    let at = |dim| (lane / QUAD * stride + dim) * QUAD + lane % QUAD;
                    let scales = tile.add(layout.value_scales);
                    *scales.cast::<f32>().add(lane) = store_codes(value, at, values);
                }
            }
        }
    }
}

/// Store a vector as f16, dimension `dim` as element `at(dim)` of `base`.
///
/// # Safety
/// Each of these elements is inside the arena, and nobody else uses it; the arena is aligned for every type.
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

/// The same as int8 codes; returns their scale.
///
/// # Safety
/// As [`store_f16`].
#[inline(always)]
unsafe fn store_codes(vector: &[f32], at: impl Fn(usize) -> usize, base: *mut u8) -> f32 {
    let (step, inverse) = int8_step(vector);
    for (dim, &x) in vector.iter().enumerate() {
        // To nearest even; a vector that is no number has zeros and a scale of NaN.
        let code = (x * inverse + ROUND).to_bits() as u8;
        // SAFETY: the caller's promise.
        unsafe { *base.add(at(dim)) = code.wrapping_add(ZERO_CODE) };
    }
    step
}

/// Scale of a vector's int8 codes, and what to multiply it with to get them.
fn int8_step(vector: &[f32]) -> (f32, f32) {
    let largest = vector.iter().map(|x| x.to_bits() & 0x7fff_ffff).max();
    // As integers, magnitudes order as floats do, and NaN is above all.
    let largest = f32::from_bits(largest.unwrap_or(0));
    if !largest.is_finite() {
        return (f32::NAN, 0.0);
    }
    // Below this the inverse overflows; such a vector is zero for every purpose.
    let inverse = if largest > 1e-30 {
        127.0 / largest
    } else {
        0.0
    };
    (largest / 127.0, inverse)
}

/// An f32 rounded to f16, to nearest even, without a branch, so that vectors of them are fast.
#[inline(always)]
fn narrow_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Numbers below the normal f16 ones: adding 0.5 puts their bits at the bottom, rounded.
    let small = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0.5f32.to_bits());
    // Others: the exponent's bias changes by 112, and half a step is added, less one if the last bit is even.
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
        // What rounds up from here on becomes infinity by itself.
        normal
    } else {
        special
    };
    (half | bits >> 16 & 0x8000) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: KvShape = KvShape {
        dtype: KvDtype::F32,
        layers: 2,
        blocks: 3,
        block_size: 32,
        kv_heads: 2,
        head_dim: 24,
    };

    #[test]
    fn impossible_pools_are_refused_with_a_sentence() {
        for shape in [
            KvShape {
                block_size: 24,
                ..SHAPE
            },
            KvShape {
                block_size: 0,
                ..SHAPE
            },
            KvShape { blocks: 0, ..SHAPE },
            KvShape {
                blocks: i32::MAX as usize,
                layers: 1 << 40,
                ..SHAPE
            },
        ] {
            assert!(KvCache::new(shape).is_err(), "{shape:?}");
        }
        assert!(KvDtype::parse("q8").is_err());
    }

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

    #[test]
    fn int8_is_within_half_a_step_and_spreads_what_is_no_number() {
        let shape = KvShape {
            dtype: KvDtype::Int8,
            ..SHAPE
        };
        let cache = KvCache::new(shape).unwrap();
        let vector: Vec<f32> = (0..24).map(|i| (i as f32 * 0.7).sin() * 3.0).collect();
        // SAFETY: single-threaded; in bounds.
        unsafe {
            let head = cache.head(1, 1);
            head.write_key(2, 17, &vector);
            head.write_value(2, 17, &vector);
            let (tile, layout) = (head.tile(2, 17), shape.tile_layout());
            let scale = |at: usize| *tile.add(at).cast::<f32>().add(1);
            let scales = [scale(layout.key_scales), scale(layout.value_scales)];
            for (dim, x) in vector.iter().enumerate() {
                let key = *tile.add((dim / 4 * 16 + 1) * 4 + dim % 4);
                let value = *tile.add(layout.values + dim * 4 + 1);
                for (code, scale) in [key, value].into_iter().zip(scales) {
                    let error = ((f32::from(code) - 128.0) * scale - x).abs();
                    assert!(error <= scale * 0.50001, "{dim}");
                }
            }
            let mut bad = vector;
            bad[3] = f32::INFINITY;
            head.write_key(2, 17, &bad);
            assert!(scale(layout.key_scales).is_nan());
        }
    }

    #[test]
    fn slots_do_not_overlap() {
        let cache = KvCache::new(SHAPE).unwrap();
        let marks = |mark: usize| vec![mark as f32; 24];
        let slots = || {
            (0..2).flat_map(|layer| {
                (0..3).flat_map(move |block| {
                    (0..2).flat_map(move |head| (0..32).map(move |slot| (layer, block, head, slot)))
                })
            })
        };
        for (mark, (layer, block, head, slot)) in slots().enumerate() {
            // SAFETY: single-threaded.
            unsafe {
                let head = cache.head(layer, head);
                head.write_key(block, slot, &marks(mark));
                head.write_value(block, slot, &marks(mark + 10_000));
            }
        }
        for (mark, (layer, block, head, slot)) in slots().enumerate() {
            for dim in 0..24 {
                // SAFETY: single-threaded; in bounds.
                unsafe {
                    let tile = cache.head(layer, head).tile(block, slot);
                    let key = tile.cast::<f32>().add(dim * 16 + slot % 16);
                    assert_eq!(*key, mark as f32);
                    let at = slot % 16 * cache.value_stride() + dim;
                    let values = tile.add(SHAPE.tile_layout().values);
                    let value = *values.cast::<f32>().add(at);
                    assert_eq!(value, (mark + 10_000) as f32);
                }
            }
        }
    }
}
