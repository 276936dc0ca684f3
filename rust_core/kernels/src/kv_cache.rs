//! The paged KV cache: blocks laid out for the attention kernel.
//!
//! A block holds the keys and values of its tokens in every layer; layers may differ in their heads. All blocks of a layer
//! are contiguous.
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
mod layer;
mod pools;
mod tile_layout;

pub(crate) use codes::ZERO_CODE;
pub(crate) use head::KvHead;
pub use layer::KvLayer;
pub use pools::{KvPools, KvShapes};
pub(crate) use tile_layout::TileLayout;

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

/// The KV heads of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvHeads {
    pub kv_heads: usize,
    pub head_dim: usize,
}

/// Dimensions of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvShape {
    pub dtype: KvDtype,
    pub blocks: usize,
    /// Tokens in a block; a multiple of 16.
    pub block_size: usize,
    /// The layers that have keys and values of their own.
    pub layers: Vec<KvHeads>,
}

/// Inputs per lane of an int8 dot product.
pub(crate) const QUAD: usize = 4;

impl KvShape {
    /// Bytes of one KV head's part of a block of a layer with such heads.
    ///
    /// # Errors
    /// The block size or the head dimension is impossible, or the bytes are too many for an address.
    fn head_bytes(&self, heads: &KvHeads) -> Result<usize, KernelError> {
        if self.block_size == 0 || !self.block_size.is_multiple_of(LANES) {
            return Err(KernelError::config(format!(
                "A KV block of {} tokens is not possible: choose a multiple of {LANES}.",
                self.block_size
            )));
        }
        if heads.head_dim == 0 || heads.head_dim > MAX_HEAD_DIM {
            return Err(KernelError::config(format!(
                "KV heads of {} dimensions are not possible: the most is {MAX_HEAD_DIM}.",
                heads.head_dim
            )));
        }
        (self.block_size / LANES)
            .checked_mul(TileLayout::new(self.dtype, heads.head_dim).end)
            .ok_or_else(too_large)
    }

    /// Bytes of a block over all layers: the pool is as many times larger as it has blocks.
    ///
    /// # Errors
    /// The block size or a head dimension is impossible, or the bytes are too many for an address.
    pub fn block_bytes(&self) -> Result<usize, KernelError> {
        self.layers.iter().try_fold(0usize, |bytes, heads| {
            self.head_bytes(heads)?
                .checked_mul(heads.kv_heads)
                .and_then(|layer| bytes.checked_add(layer))
                .ok_or_else(too_large)
        })
    }
}

fn too_large() -> KernelError {
    KernelError::Memory("The KV pool would not fit in memory.".into())
}

/// Storage of every block of every layer.
#[derive(Debug)]
pub struct KvCache {
    shape: KvShape,
    /// In the order of `shape.layers`; each has its part of the arena.
    layers: Vec<KvLayer>,
    arena: Arena,
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
        let total = shape
            .block_bytes()?
            .checked_mul(shape.blocks)
            .ok_or_else(too_large)?;
        let arena = Arena::new(total)?;
        let (mut layers, mut at) = (Vec::with_capacity(shape.layers.len()), 0);
        for heads in &shape.layers {
            let head_bytes = shape.head_bytes(heads)?;
            // SAFETY: the parts of the layers before are together smaller than the arena, which the cache keeps.
            let layer = unsafe { KvLayer::new(&shape, heads, head_bytes, arena.as_ptr().add(at)) };
            at += layer.block_bytes() * shape.blocks; // at most `total`
            layers.push(layer);
        }
        Ok(Self {
            shape,
            layers,
            arena,
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

    /// Layer `index` of the shape's layers.
    #[inline(always)]
    pub fn layer(&self, index: usize) -> &KvLayer {
        &self.layers[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Level;
    use crate::pack::tests::Random;
    use crate::simd::naive_hadamard;

    const HEADS: KvHeads = KvHeads {
        kv_heads: 2,
        head_dim: 24,
    };

    /// Two equal layers.
    fn shape(dtype: KvDtype) -> KvShape {
        KvShape {
            dtype,
            blocks: 3,
            block_size: 32,
            layers: vec![HEADS; 2],
        }
    }

    #[test]
    fn invalid_pool_sizes_are_rejected() {
        let sound = shape(KvDtype::F32);
        let of = |heads: KvHeads| KvShape {
            layers: vec![HEADS, heads],
            ..sound.clone()
        };
        for shape in [
            KvShape {
                block_size: 24,
                ..sound.clone()
            },
            KvShape {
                block_size: 0,
                ..sound.clone()
            },
            KvShape {
                blocks: 0,
                ..sound.clone()
            },
            KvShape {
                blocks: i32::MAX as usize,
                ..of(KvHeads {
                    kv_heads: 1 << 40,
                    ..HEADS
                })
            },
            // Whose bytes wrap around to a small number.
            KvShape {
                block_size: 1 << 60,
                ..sound.clone()
            },
            of(KvHeads {
                kv_heads: 1 << 60,
                ..HEADS
            }),
            of(KvHeads {
                kv_heads: 2,
                head_dim: 1 << 62,
            }),
            of(KvHeads {
                kv_heads: 2,
                head_dim: MAX_HEAD_DIM + 1,
            }),
            of(KvHeads {
                kv_heads: 2,
                head_dim: 0,
            }),
        ] {
            assert!(KvCache::new(shape.clone()).is_err(), "{shape:?}");
        }
        assert!(KvDtype::parse("q8").is_err());
    }

    #[test]
    fn layers_whose_bytes_together_wrap_around_are_rejected() {
        let heads = KvHeads {
            kv_heads: 1 << 45,
            head_dim: 512,
        };
        let all = KvShape {
            layers: vec![heads; 1 << 10],
            ..shape(KvDtype::F32)
        };
        let one = KvShape {
            layers: vec![heads],
            ..all.clone()
        };
        assert!(one.block_bytes().is_ok());
        assert!(all.block_bytes().is_err());
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
            let shape = shape(dtype);
            assert_eq!(shape.block_bytes().unwrap(), 2 * 2 * head_bytes);
            let cache = KvCache::new(shape.clone()).unwrap();
            assert_eq!(cache.block_bytes(), shape.block_bytes().unwrap());
            assert_eq!(cache.bytes(), 3 * shape.block_bytes().unwrap());
        }
    }

    #[test]
    fn layers_may_differ_and_there_may_be_none() {
        let mut shape = shape(KvDtype::F16);
        shape.layers = vec![
            KvHeads {
                kv_heads: 4,
                head_dim: 256,
            },
            KvHeads {
                kv_heads: 1,
                head_dim: 512,
            },
        ];
        let bytes = (4 * 256 + 512) * 2 * 2 * 32;
        assert_eq!(shape.block_bytes().unwrap(), bytes);
        assert_eq!(KvCache::new(shape.clone()).unwrap().bytes(), 3 * bytes);
        shape.layers.clear();
        let cache = KvCache::new(shape).unwrap();
        assert_eq!((cache.block_bytes(), cache.bytes()), (0, 0));
    }

    #[test]
    fn int8_error_is_within_half_a_step_and_non_finite_values_give_nan() {
        let levels = Level::ALL.into_iter().filter(|level| level.available());
        let dims = [24, 64, 80, 96, 112, 128, 160, 192, 256, 512];
        for (level, head_dim) in levels.flat_map(|level| dims.map(|dim| (level, dim))) {
            let mut shape = shape(KvDtype::Int8);
            shape.layers[1].head_dim = head_dim;
            let cache = KvCache::new(shape).unwrap();
            let (head, layout) = (cache.layer(1).head(1), cache.layer(1).tile_layout());
            let tile = head.tile(2, 17);
            // SAFETY: in bounds; single-threaded.
            let scale = |at: usize| unsafe { *tile.add(at).cast::<f32>().add(1) };
            let mut vector: Vec<f32> = (0..head_dim)
                .map(|i| (i as f32 * 0.7).sin() * 3.0)
                .collect();
            // SAFETY: the level is available; single-threaded.
            unsafe {
                head.write_key(level, 2, 17, &vector);
                head.write_value(level, 2, 17, &vector);
            }
            let scales = [scale(layout.key_scales), scale(layout.value_scales)];
            let mut padded = vector.clone();
            padded.resize(head_dim.next_multiple_of(LANES), 0.0);
            let transformed = naive_hadamard(&padded);
            for (dim, x) in vector.iter().enumerate() {
                // SAFETY: in bounds; single-threaded.
                let codes = unsafe {
                    let key = *tile.add((dim / 4 * 16 + 1) * 4 + dim % 4);
                    [key, *tile.add(layout.values + dim * 4 + 1)]
                };
                let exact = [transformed[dim] as f32, *x];
                for ((code, scale), x) in codes.into_iter().zip(scales).zip(exact) {
                    let error = ((f32::from(code) - 128.0) * scale - x).abs();
                    assert!(error <= scale * 0.5001, "{level:?} {head_dim}: {dim}");
                }
            }
            vector[3] = f32::INFINITY;
            // SAFETY: as above.
            unsafe { head.write_key(level, 2, 17, &vector) };
            assert!(scale(layout.key_scales).is_nan());
        }
    }

    #[test]
    fn writing_four_tokens_equals_writing_each_on_every_level() {
        for head_dim in [64, 128, 192, 256, 512] {
            let mut shape = shape(KvDtype::Int8);
            shape.layers[1].head_dim = head_dim;
            let mut random = Random(head_dim as u64);
            let mut vectors: [Vec<f32>; QUAD] =
                std::array::from_fn(|_| (0..head_dim).map(|_| random.unit()).collect());
            vectors[1][head_dim - 1] = f32::NAN;
            let vectors = vectors.each_ref().map(Vec::as_slice);
            let mut first: Option<Vec<u8>> = None;
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                let [together, separately] = [(); 2].map(|()| KvCache::new(shape.clone()).unwrap());
                let bytes = |cache: &KvCache| {
                    let layer = cache.layer(1);
                    // SAFETY: inside the tile; single-threaded.
                    let tile = unsafe {
                        let tile = layer.head(1).tile(2, 20);
                        std::slice::from_raw_parts(tile, layer.bytes_of(LANES))
                    };
                    tile.to_vec()
                };
                let (four, one) = (together.layer(1).head(1), separately.layer(1).head(1));
                assert!(!four.can_write_four_from(21));
                // SAFETY: the level is available; single-threaded.
                unsafe {
                    four.write_keys(level, 2, 20, vectors);
                    four.write_values(level, 2, 20, vectors);
                    for (i, vector) in vectors.into_iter().enumerate() {
                        one.write_key(level, 2, 20 + i, vector);
                        one.write_value(level, 2, 20 + i, vector);
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
        let mut shape = shape(KvDtype::F32);
        shape.layers.insert(
            1,
            KvHeads {
                kv_heads: 3,
                head_dim: 17,
            },
        );
        let cache = KvCache::new(shape).unwrap();
        let slots = || {
            cache.layers.iter().flat_map(|layer| {
                (0..3).flat_map(move |block| {
                    (0..layer.kv_heads)
                        .flat_map(move |head| (0..32).map(move |slot| (layer, block, head, slot)))
                })
            })
        };
        for (mark, (layer, block, head, slot)) in slots().enumerate() {
            let marks = |mark: usize| vec![mark as f32; layer.head_dim];
            // SAFETY: single-threaded.
            unsafe {
                let head = layer.head(head);
                head.write_key(Level::Portable, block, slot, &marks(mark));
                head.write_value(Level::Portable, block, slot, &marks(mark + 10_000));
            }
        }
        for (mark, (layer, block, head, slot)) in slots().enumerate() {
            for dim in 0..layer.head_dim {
                // SAFETY: single-threaded; in bounds.
                unsafe {
                    let tile = layer.head(head).tile(block, slot);
                    let key = tile.cast::<f32>().add(dim * 16 + slot % 16);
                    assert_eq!(*key, mark as f32);
                    let at = slot % 16 * layer.value_stride() + dim;
                    let values = tile.add(layer.tile_layout().values);
                    let value = *values.cast::<f32>().add(at);
                    assert_eq!(value, (mark + 10_000) as f32);
                }
            }
        }
    }
}
