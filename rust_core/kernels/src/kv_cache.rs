//! The paged KV cache: blocks laid out for the attention kernel.
//!
//! A block of a layer holds, for each KV head, its tokens in tiles of 16: keys, then values. Keys are stored
//! `[dimension][16]`, so that a vector of 16 scores is accumulated with one multiply-add per dimension and
//! no horizontal sum. Values are stored `[token][padded dimension]`. Slots that have not been written hold
//! arbitrary bytes; readers mask them.
//!
//! With int8, each head of a token has one f32 scale for its Hadamard-rotated key (see `codes.rs`) and one for its value,
//! `x ≈ scale * (code - 128)`. An int8 dot product consumes four inputs at once, so keys are stored
//! `[padded dimension / 4][16][4]` and values `[token / 4][padded dimension][4]`. The scales of the 16 keys and of the 16 values
//! are stored between keys and values; they are applied to scores and attention probabilities, which are vectors over tokens.

mod block_copy;
mod codes;
mod head;

pub(crate) use codes::ZERO_CODE;
pub(crate) use head::KvHead;

use crate::arena::Arena;
use crate::error::KernelError;
use crate::simd::LANES;
use crate::spec::MAX_HEAD_DIM;

/// Element type of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvDtype {
    F16,
    F32,
    /// With one scale per token and head.
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

    /// Bytes of the scale of a key or value vector.
    pub fn scale_bytes(self) -> usize {
        match self {
            Self::F16 | Self::F32 => 0,
            Self::Int8 => size_of::<f32>(),
        }
    }
}

/// Dimensions of a cache.
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

/// Inputs per lane of an int8 dot product.
pub(crate) const QUAD: usize = 4;

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

    /// Bytes of the scales of a tile's keys; the same for its values.
    fn scale_bytes(&self) -> usize {
        LANES * self.dtype.scale_bytes()
    }

    /// Byte offsets within a tile.
    pub(crate) fn tile_layout(&self) -> TileLayout {
        let key_scales = self.key_bytes();
        let value_scales = key_scales + self.scale_bytes();
        TileLayout {
            key_scales,
            value_scales,
            values: value_scales + self.scale_bytes(),
        }
    }

    /// Bytes of a tile up to the end of the values of its first `tokens` tokens.
    pub(crate) fn bytes_of(&self, tokens: usize) -> usize {
        let tokens = match self.dtype {
            KvDtype::F16 | KvDtype::F32 => tokens,
            KvDtype::Int8 => LANES,
        };
        self.tile_layout().values + tokens * self.padded_dim() * self.dtype.bytes()
    }

    /// Bytes of one KV head's part of a block of one layer.
    ///
    /// # Errors
    /// The block size or the head dimension is impossible, or the bytes are too many for an address.
    fn head_bytes(&self) -> Result<usize, KernelError> {
        if self.block_size == 0 || !self.block_size.is_multiple_of(LANES) {
            return Err(KernelError::config(format!(
                "A KV block of {} tokens is not possible: choose a multiple of {LANES}.",
                self.block_size
            )));
        }
        if self.head_dim == 0 || self.head_dim > MAX_HEAD_DIM {
            return Err(KernelError::config(format!(
                "KV heads of {} dimensions are not possible: the most is {MAX_HEAD_DIM}.",
                self.head_dim
            )));
        }
        // The bytes of a tile cannot overflow, because the head dimension is bounded.
        (self.block_size / LANES)
            .checked_mul(self.bytes_of(LANES))
            .ok_or_else(too_large)
    }

    /// Bytes of a block over all layers: the pool is as many times larger as it has blocks.
    ///
    /// # Errors
    /// The block size or the head dimension is impossible, or the bytes are too many for an address.
    pub fn block_bytes(&self) -> Result<usize, KernelError> {
        self.head_bytes()?
            .checked_mul(self.kv_heads)
            .and_then(|bytes| bytes.checked_mul(self.layers))
            .ok_or_else(too_large)
    }
}

fn too_large() -> KernelError {
    KernelError::Memory("The KV pool would not fit in memory.".into())
}

/// Byte offsets within a tile, which holds the keys and values of 16 consecutive tokens of a KV head. Keys are at offset 0:
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
    /// Bytes of a KV head's part of a block.
    head_bytes: usize,
    /// Bytes of a layer's part of the pool.
    layer_bytes: usize,
}

impl KvCache {
    /// Reserve the pool. Its pages take physical memory when tokens are first written to them.
    pub fn new(shape: KvShape) -> Result<Self, KernelError> {
        if shape.blocks == 0 || shape.blocks > i32::MAX as usize {
            return Err(KernelError::config(format!(
                "A KV pool of {} blocks is not possible.",
                shape.blocks
            )));
        }
        let (head_bytes, block_bytes) = (shape.head_bytes()?, shape.block_bytes()?);
        let total = block_bytes
            .checked_mul(shape.blocks)
            .ok_or_else(too_large)?;
        Ok(Self {
            shape,
            arena: Arena::new(total)?,
            head_bytes,
            layer_bytes: head_bytes * shape.kv_heads * shape.blocks, // at most `total`
        })
    }

    /// Fault in all pages now instead of at first use.
    pub fn prefault(&mut self) {
        for page in (0..self.arena.len()).step_by(4096) {
            // SAFETY: inside the arena, which `&mut self` borrows exclusively.
            unsafe {
                let byte = self.arena.as_ptr().add(page);
                byte.write_volatile(byte.read());
            }
        }
    }

    /// Bytes of the pool.
    pub fn bytes(&self) -> usize {
        self.arena.len()
    }

    pub fn shape(&self) -> &KvShape {
        &self.shape
    }

    /// One KV head of one layer.
    #[inline(always)]
    pub(crate) fn head(&self, layer: usize, kv_head: usize) -> KvHead<'_> {
        let shape = &self.shape;
        assert!(layer < shape.layers && kv_head < shape.kv_heads);
        let head_bytes = self.head_bytes;
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

    /// Elements between the values of consecutive tokens.
    pub(crate) fn value_stride(&self) -> usize {
        self.shape.padded_dim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Level;
    use crate::pack::tests::Random;
    use crate::simd::naive_hadamard;

    const SHAPE: KvShape = KvShape {
        dtype: KvDtype::F32,
        layers: 2,
        blocks: 3,
        block_size: 32,
        kv_heads: 2,
        head_dim: 24,
    };

    #[test]
    fn invalid_pool_sizes_are_rejected() {
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
            // Whose bytes wrap around to a small number.
            KvShape {
                block_size: 1 << 60,
                ..SHAPE
            },
            KvShape {
                kv_heads: 1 << 60,
                ..SHAPE
            },
            KvShape {
                head_dim: 1 << 62,
                ..SHAPE
            },
        ] {
            assert!(KvCache::new(shape).is_err(), "{shape:?}");
        }
        assert!(KvDtype::parse("q8").is_err());
    }

    #[test]
    fn the_pool_is_as_large_as_its_blocks_including_padding() {
        for (dtype, head_bytes) in [
            // Keys of 24 dimensions, values padded to 32.
            (KvDtype::F16, (24 + 32) * 32 * 2),
            (KvDtype::F32, (24 + 32) * 32 * 4),
            // Keys padded too, and a scale for each key and value.
            (KvDtype::Int8, (32 + 32 + 2 * 4) * 32),
        ] {
            let shape = KvShape { dtype, ..SHAPE };
            assert_eq!(shape.block_bytes().unwrap(), 2 * 2 * head_bytes);
            let cache = KvCache::new(shape).unwrap();
            assert_eq!(cache.bytes(), 3 * shape.block_bytes().unwrap());
        }
    }

    #[test]
    fn int8_error_is_within_half_a_step_and_non_finite_values_give_nan() {
        let shape = KvShape {
            dtype: KvDtype::Int8,
            ..SHAPE
        };
        let cache = KvCache::new(shape).unwrap();
        let vector: Vec<f32> = (0..24).map(|i| (i as f32 * 0.7).sin() * 3.0).collect();
        // SAFETY: single-threaded; in bounds.
        unsafe {
            let head = cache.head(1, 1);
            head.write_key(Level::Portable, 2, 17, &vector);
            head.write_value(Level::Portable, 2, 17, &vector);
            let (tile, layout) = (head.tile(2, 17), shape.tile_layout());
            let scale = |at: usize| *tile.add(at).cast::<f32>().add(1);
            let scales = [scale(layout.key_scales), scale(layout.value_scales)];
            let mut padded = vector.clone();
            padded.resize(32, 0.0);
            let transformed = naive_hadamard(&padded);
            for (dim, x) in vector.iter().enumerate() {
                let key = *tile.add((dim / 4 * 16 + 1) * 4 + dim % 4);
                let value = *tile.add(layout.values + dim * 4 + 1);
                let exact = [transformed[dim] as f32, *x];
                for ((code, scale), x) in [key, value].into_iter().zip(scales).zip(exact) {
                    let error = ((f32::from(code) - 128.0) * scale - x).abs();
                    assert!(error <= scale * 0.50001, "{dim}");
                }
            }
            let mut bad = vector;
            bad[3] = f32::INFINITY;
            head.write_key(Level::Portable, 2, 17, &bad);
            assert!(scale(layout.key_scales).is_nan());
        }
    }

    #[test]
    fn writing_four_tokens_equals_writing_each_on_every_level() {
        for head_dim in [64, 128, 192] {
            let shape = KvShape {
                dtype: KvDtype::Int8,
                head_dim,
                ..SHAPE
            };
            let mut random = Random(head_dim as u64);
            let mut vectors: [Vec<f32>; QUAD] =
                std::array::from_fn(|_| (0..head_dim).map(|_| random.unit()).collect());
            vectors[1][head_dim - 1] = f32::NAN;
            let vectors = vectors.each_ref().map(Vec::as_slice);
            let mut first: Option<Vec<u8>> = None;
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                let [together, separately] = [(); 2].map(|()| KvCache::new(shape).unwrap());
                let bytes = |cache: &KvCache| {
                    // SAFETY: inside the tile; single-threaded.
                    let tile = unsafe {
                        let tile = cache.head(1, 1).tile(2, 20);
                        std::slice::from_raw_parts(tile, shape.bytes_of(LANES))
                    };
                    tile.to_vec()
                };
                // SAFETY: the level is available; single-threaded.
                unsafe {
                    assert!(!together.head(1, 1).can_write_four_from(21));
                    together.head(1, 1).write_keys(level, 2, 20, vectors);
                    together.head(1, 1).write_values(level, 2, 20, vectors);
                    for (i, vector) in vectors.into_iter().enumerate() {
                        separately.head(1, 1).write_key(level, 2, 20 + i, vector);
                        separately.head(1, 1).write_value(level, 2, 20 + i, vector);
                    }
                }
                assert_eq!(bytes(&together), bytes(&separately), "{level:?} {head_dim}");
                let first = first.get_or_insert_with(|| bytes(&together));
                assert_eq!(bytes(&together), *first, "{level:?} {head_dim}");
            }
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
                head.write_key(Level::Portable, block, slot, &marks(mark));
                head.write_value(Level::Portable, block, slot, &marks(mark + 10_000));
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
