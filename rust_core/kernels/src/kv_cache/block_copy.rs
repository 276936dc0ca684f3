//! Copying whole blocks: within the pool (copy-on-write of a partially shared block) and between the pool and the swap
//! tier.

use super::KvCache;

impl KvCache {
    /// Bytes of one layer's part of a block, which is contiguous.
    fn layer_part(&self) -> usize {
        self.head_bytes * self.shape.kv_heads
    }

    /// Bytes of a block, every layer.
    pub(crate) fn block_bytes(&self) -> usize {
        self.layer_part() * self.shape.layers
    }

    /// Copy a block's bytes, layer by layer, into `bytes`, which is [`Self::block_bytes`] long.
    ///
    /// # Safety
    /// No other thread writes the block during the call.
    pub(crate) unsafe fn read_block(&self, block: usize, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), self.block_bytes());
        for (layer, part) in bytes.chunks_exact_mut(self.layer_part()).enumerate() {
            let from = self.head(layer, 0).tile(block, 0);
            // SAFETY: `tile` checked the index, and a block's heads are contiguous.
            unsafe { std::ptr::copy_nonoverlapping(from, part.as_mut_ptr(), part.len()) };
        }
    }

    /// Copy `bytes`, as returned by `read_block`, into a block.
    ///
    /// # Safety
    /// No other thread accesses the block during the call.
    pub(crate) unsafe fn write_block(&self, block: usize, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.block_bytes());
        for (layer, part) in bytes.chunks_exact(self.layer_part()).enumerate() {
            let to = self.head(layer, 0).tile(block, 0);
            // SAFETY: as above; exclusive by contract.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len()) };
        }
    }

    /// Copy every layer's keys and values of block `source` to block `target`: one `memcpy` per layer.
    ///
    /// # Safety
    /// No other thread reads `target` or writes either block during the call.
    pub(crate) unsafe fn copy_block(&self, source: usize, target: usize) {
        if source == target {
            return;
        }
        let bytes = self.layer_part();
        for layer in 0..self.shape.layers {
            let head = self.head(layer, 0);
            let (from, to) = (head.tile(source, 0), head.tile(target, 0));
            // SAFETY: `tile` checked both; a block's heads are contiguous, and two blocks do not
            // overlap. Exclusive by contract.
            unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dispatch::Level;
    use crate::kv_cache::{KvCache, KvDtype, KvShape};

    /// A cache of three blocks in which every value encodes its location.
    fn marked() -> KvCache {
        let cache = KvCache::new(KvShape {
            dtype: KvDtype::F32,
            layers: 2,
            blocks: 3,
            block_size: 16,
            kv_heads: 2,
            head_dim: 8,
        })
        .unwrap();
        for (layer, block, head, slot) in every_slot(3) {
            let mark = (layer * 1000 + block * 100 + head * 16 + slot) as f32;
            // SAFETY: single-threaded.
            unsafe {
                let head = cache.head(layer, head);
                head.write_key(Level::Portable, block, slot, &[mark; 8]);
                head.write_value(Level::Portable, block, slot, &[-mark; 8]);
            }
        }
        cache
    }

    /// Check that block `b` holds the initial contents of block `from[b]`.
    fn assert_holds(cache: &KvCache, from: [usize; 3]) {
        for (layer, block, head, slot) in every_slot(3) {
            let mark = (layer * 1000 + from[block] * 100 + head * 16 + slot) as f32;
            for dim in 0..8 {
                // SAFETY: single-threaded; in bounds.
                unsafe {
                    let tile = cache.head(layer, head).tile(block, slot);
                    let key = *tile.cast::<f32>().add(dim * 16 + slot % 16);
                    let at = slot % 16 * cache.value_stride() + dim;
                    assert_eq!(key, mark);
                    let values = tile.add(cache.shape.tile_layout().values);
                    assert_eq!(*values.cast::<f32>().add(at), -mark);
                }
            }
        }
    }

    #[test]
    fn a_copied_block_is_equal_in_every_layer_and_its_neighbours_are_untouched() {
        let cache = marked();
        // SAFETY: single-threaded.
        unsafe { cache.copy_block(0, 2) };
        assert_holds(&cache, [0, 1, 0]);
    }

    #[test]
    fn a_block_read_and_written_elsewhere_is_equal_and_its_neighbours_are_untouched() {
        let cache = marked();
        let mut bytes = vec![0; cache.block_bytes()];
        // SAFETY: single-threaded.
        unsafe {
            cache.read_block(1, &mut bytes);
            cache.write_block(0, &bytes);
        }
        assert_holds(&cache, [1, 1, 2]);
    }

    fn every_slot(blocks: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
        (0..2 * blocks * 2 * 16).map(move |at| {
            let (slot, head, rest) = (at % 16, at / 16 % 2, at / 32);
            (rest / blocks, rest % blocks, head, slot)
        })
    }
}
