//! The paged KV cache: blocks laid out for the attention kernel.
//!
//! A block of a layer holds, for each KV head, keys and then values. Keys stand in tiles of 16 tokens,
//! `[tile][dimension][16]`, so that one vector of 16 scores grows by one multiply-add a dimension with
//! no horizontal sum. Values stand token by token, `[token][padded dimension]`. Bytes of slots that no
//! token has been written to are whatever they were: readers mask them.

mod block_copy;

use half::f16;

use crate::arena::Arena;
use crate::error::KernelError;
use crate::simd::LANES;

/// Element type of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvDtype {
    F16,
    F32,
}

impl KvDtype {
    pub fn parse(name: &str) -> Result<Self, KernelError> {
        match name {
            "f16" => Ok(Self::F16),
            "f32" => Ok(Self::F32),
            _ => Err(KernelError::config(format!(
                "There is no KV cache type {name:?}: choose f16 or f32."
            ))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 => 4,
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

impl KvShape {
    fn padded_dim(&self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }

    fn key_bytes(&self) -> usize {
        self.block_size * self.head_dim * self.dtype.bytes()
    }

    fn value_bytes(&self) -> usize {
        self.block_size * self.padded_dim() * self.dtype.bytes()
    }

    /// Bytes of one KV head's part of a block of one layer.
    fn head_bytes(&self) -> usize {
        self.key_bytes() + self.value_bytes()
    }

    fn layer_bytes(&self) -> Option<usize> {
        self.head_bytes()
            .checked_mul(self.kv_heads)?
            .checked_mul(self.blocks)
    }
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

    fn head(&self, layer: usize, block: usize, kv_head: usize) -> *mut u8 {
        let shape = &self.shape;
        assert!(layer < shape.layers && block < shape.blocks && kv_head < shape.kv_heads);
        let at = layer * self.layer_bytes + (block * shape.kv_heads + kv_head) * shape.head_bytes();
        // SAFETY: inside the arena by the checks above.
        unsafe { self.arena.as_ptr().add(at) }
    }

    /// The key tile that starts at token `slot` (a multiple of 16) of a block.
    pub(crate) fn key_tile(
        &self,
        layer: usize,
        block: usize,
        kv_head: usize,
        slot: usize,
    ) -> *const u8 {
        assert!(slot < self.shape.block_size);
        let at = slot / LANES * LANES * self.shape.head_dim * self.shape.dtype.bytes();
        // SAFETY: inside the head's keys by the check.
        unsafe { self.head(layer, block, kv_head).add(at) }
    }

    /// The value of token `slot` of a block; the next token's follows `value_stride` elements later.
    pub(crate) fn value(
        &self,
        layer: usize,
        block: usize,
        kv_head: usize,
        slot: usize,
    ) -> *const u8 {
        assert!(slot < self.shape.block_size);
        let at = self.shape.key_bytes() + slot * self.shape.padded_dim() * self.shape.dtype.bytes();
        // SAFETY: inside the head's values by the check.
        unsafe { self.head(layer, block, kv_head).add(at) }
    }

    /// Elements from one token's value to the next.
    pub(crate) fn value_stride(&self) -> usize {
        self.shape.padded_dim()
    }

    /// Write a token's key.
    ///
    /// # Safety
    /// Nobody else reads or writes this slot meanwhile.
    pub(crate) unsafe fn write_key(
        &self,
        layer: usize,
        block: usize,
        kv_head: usize,
        slot: usize,
        key: &[f32],
    ) {
        assert_eq!(key.len(), self.shape.head_dim);
        let tile = self.key_tile(layer, block, kv_head, slot).cast_mut();
        let lane = slot % LANES;
        for (dim, &x) in key.iter().enumerate() {
            // SAFETY: lane `lane` of dimension `dim` is inside the tile; exclusive by contract.
            unsafe { self.store(tile, dim * LANES + lane, x) };
        }
    }

    /// Write a token's value.
    ///
    /// # Safety
    /// Nobody else reads or writes this slot meanwhile.
    pub(crate) unsafe fn write_value(
        &self,
        layer: usize,
        block: usize,
        kv_head: usize,
        slot: usize,
        value: &[f32],
    ) {
        assert_eq!(value.len(), self.shape.head_dim);
        let row = self.value(layer, block, kv_head, slot).cast_mut();
        for (dim, &x) in value.iter().enumerate() {
            // SAFETY: `dim` is inside the row; exclusive by contract.
            unsafe { self.store(row, dim, x) };
        }
    }

    /// Store an element, rounded to the cache's type.
    ///
    /// # Safety
    /// Element `at` of `base` is inside the arena and nobody else uses it.
    #[inline(always)]
    unsafe fn store(&self, base: *mut u8, at: usize, x: f32) {
        // SAFETY: the caller's promise; both types are aligned to their size within the arena.
        unsafe {
            match self.shape.dtype {
                KvDtype::F16 => *base.cast::<u16>().add(at) = f16::from_f32(x).to_bits(),
                KvDtype::F32 => *base.cast::<f32>().add(at) = x,
            }
        }
    }
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
                cache.write_key(layer, block, head, slot, &marks(mark));
                cache.write_value(layer, block, head, slot, &marks(mark + 10_000));
            }
        }
        for (mark, (layer, block, head, slot)) in slots().enumerate() {
            for dim in 0..24 {
                // SAFETY: single-threaded; in bounds.
                unsafe {
                    let tile = cache
                        .key_tile(layer, block, head, slot / 16 * 16)
                        .cast::<f32>();
                    assert_eq!(*tile.add(dim * 16 + slot % 16), mark as f32);
                    let value = cache.value(layer, block, head, slot).cast::<f32>();
                    assert_eq!(*value.add(dim), (mark + 10_000) as f32);
                }
            }
        }
    }
}
