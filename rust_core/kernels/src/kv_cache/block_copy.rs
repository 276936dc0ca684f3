//! Copying whole blocks inside the pool: what a fork pays for the block it shares in part.

use super::KvCache;

impl KvCache {
    /// Copy every layer's keys and values of block `source` to block `target`: one `memcpy` a layer.
    ///
    /// # Safety
    /// Nobody else reads `target` or writes either block meanwhile.
    pub(crate) unsafe fn copy_block(&self, source: usize, target: usize) {
        if source == target {
            return;
        }
        let bytes = self.shape.head_bytes() * self.shape.kv_heads;
        for layer in 0..self.shape.layers {
            let (from, to) = (self.head(layer, source, 0), self.head(layer, target, 0));
            // SAFETY: `head` checked both; a block's heads lie side by side, and two blocks do not
            // overlap. Exclusive by contract.
            unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::kv_cache::{KvCache, KvDtype, KvShape};

    #[test]
    fn a_copied_block_is_equal_in_every_layer_and_its_neighbours_are_untouched() {
        let cache = KvCache::new(KvShape {
            dtype: KvDtype::F32,
            layers: 2,
            blocks: 3,
            block_size: 16,
            kv_heads: 2,
            head_dim: 8,
        })
        .unwrap();
        let read = |layer, block, head, slot, dim: usize| {
            // SAFETY: single-threaded; in bounds.
            unsafe {
                let key = cache.key_tile(layer, block, head, slot).cast::<f32>();
                let value = cache.value(layer, block, head, slot).cast::<f32>();
                (*key.add(dim * 16 + slot % 16), *value.add(dim))
            }
        };
        for (layer, block, head, slot) in every_slot(3) {
            let mark = (layer * 1000 + block * 100 + head * 16 + slot) as f32;
            // SAFETY: single-threaded.
            unsafe {
                cache.write_key(layer, block, head, slot, &[mark; 8]);
                cache.write_value(layer, block, head, slot, &[-mark; 8]);
            }
        }
        // SAFETY: single-threaded.
        unsafe { cache.copy_block(0, 2) };
        for (layer, block, head, slot) in every_slot(3) {
            let from = if block == 2 { 0 } else { block };
            let mark = (layer * 1000 + from * 100 + head * 16 + slot) as f32;
            for dim in 0..8 {
                assert_eq!(read(layer, block, head, slot, dim), (mark, -mark));
            }
        }
    }

    fn every_slot(blocks: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
        (0..2 * blocks * 2 * 16).map(move |at| {
            let (slot, head, rest) = (at % 16, at / 16 % 2, at / 32);
            (rest / blocks, rest % blocks, head, slot)
        })
    }
}
