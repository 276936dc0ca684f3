//! One layer of the cache: its part of every block.

use super::{KvDtype, KvHead, KvHeads, KvShape, TileLayout};
use crate::simd::LANES;

/// One layer of a [`KvCache`](super::KvCache), which owns its memory and alone makes it.
#[derive(Debug)]
pub struct KvLayer {
    pub dtype: KvDtype,
    /// Tokens in a block.
    pub block_size: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub(super) blocks: usize,
    layout: TileLayout,
    /// Bytes of a KV head's part of a block.
    head_bytes: usize,
    /// Block 0.
    first: *mut u8,
}

// SAFETY: an address in the cache's arena; its users decide which thread writes which part.
unsafe impl Send for KvLayer {}
// SAFETY: as above; shared access hands out raw pointers only.
unsafe impl Sync for KvLayer {}

impl KvLayer {
    /// # Safety
    /// `head_bytes` is the shape's for such heads; from `first` on there is memory for as many blocks as the shape has,
    /// which outlives the layer.
    pub(super) unsafe fn new(
        shape: &KvShape,
        heads: &KvHeads,
        head_bytes: usize,
        first: *mut u8,
    ) -> Self {
        Self {
            dtype: shape.dtype,
            block_size: shape.block_size,
            kv_heads: heads.kv_heads,
            head_dim: heads.head_dim,
            blocks: shape.blocks,
            layout: TileLayout::new(shape.dtype, heads.head_dim),
            head_bytes,
            first,
        }
    }

    /// One KV head.
    #[inline(always)]
    pub(crate) fn head(&self, kv_head: usize) -> KvHead<'_> {
        assert!(kv_head < self.kv_heads);
        KvHead {
            layer: self,
            // SAFETY: inside block 0 by the check.
            first: unsafe { self.first.add(kv_head * self.head_bytes) },
            block_stride: self.block_bytes(),
        }
    }

    /// The layer's part of a block, which is contiguous: [`Self::block_bytes`] bytes.
    pub(super) fn block(&self, block: usize) -> *mut u8 {
        assert!(block < self.blocks);
        // SAFETY: inside the layer's memory by the check.
        unsafe { self.first.add(block * self.block_bytes()) }
    }

    /// Bytes of the layer's part of a block.
    #[inline(always)]
    pub(super) fn block_bytes(&self) -> usize {
        self.kv_heads * self.head_bytes
    }

    /// Elements between the values of consecutive tokens.
    #[inline(always)]
    pub(crate) fn value_stride(&self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }

    #[inline(always)]
    pub(crate) fn tile_layout(&self) -> &TileLayout {
        &self.layout
    }

    /// Bytes of a tile up to the end of the values of its first `tokens` tokens.
    #[inline(always)]
    pub(crate) fn bytes_of(&self, tokens: usize) -> usize {
        match self.dtype {
            KvDtype::F16 | KvDtype::F32 => {
                self.layout.values + tokens * self.value_stride() * self.dtype.bytes()
            }
            KvDtype::Int8 => self.layout.end,
        }
    }
}
