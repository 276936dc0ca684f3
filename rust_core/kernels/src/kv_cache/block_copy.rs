//! Copying whole blocks: within the pool (copy-on-write of a partially shared block) and between the pool and the swap
//! tier.

use super::{KvCache, KvLayer};

impl KvCache {
    /// Bytes of a block, every layer.
    pub(crate) fn block_bytes(&self) -> usize {
        self.layers.iter().map(KvLayer::block_bytes).sum()
    }

    /// Copy a block's bytes, layer by layer, into `bytes`, which is [`Self::block_bytes`] long.
    ///
    /// # Safety
    /// No other thread writes the block during the call.
    pub(crate) unsafe fn read_block(&self, block: usize, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), self.block_bytes());
        let mut rest = bytes;
        for layer in &self.layers {
            let part = rest
                .split_off_mut(..layer.block_bytes())
                .expect("as long as all parts");
            let from = layer.block(block);
            // SAFETY: `block` checked the index, and the layer's part of a block is contiguous.
            unsafe { std::ptr::copy_nonoverlapping(from, part.as_mut_ptr(), part.len()) };
        }
    }

    /// Copy `bytes`, as returned by `read_block`, into a block.
    ///
    /// # Safety
    /// No other thread accesses the block during the call.
    pub(crate) unsafe fn write_block(&self, block: usize, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.block_bytes());
        let mut rest = bytes;
        for layer in &self.layers {
            let part = rest
                .split_off(..layer.block_bytes())
                .expect("as long as all parts");
            // SAFETY: as above; exclusive by contract.
            unsafe {
                std::ptr::copy_nonoverlapping(part.as_ptr(), layer.block(block), part.len());
            }
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
        for layer in &self.layers {
            let (from, to) = (layer.block(source), layer.block(target));
            // SAFETY: `block` checked both, and two blocks do not overlap. Exclusive by contract.
            unsafe { std::ptr::copy_nonoverlapping(from, to, layer.block_bytes()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dispatch::Level;
    use crate::kv_cache::{KvCache, KvDtype, KvHeads, KvLayer, KvShape};

    /// A cache of three blocks in which every value encodes its location; its layers differ.
    fn marked() -> KvCache {
        let layers = [(2, 8), (1, 24), (2, 8)];
        let cache = KvCache::new(KvShape {
            dtype: KvDtype::F32,
            blocks: 3,
            block_size: 16,
            layers: layers
                .map(|(kv_heads, head_dim)| KvHeads { kv_heads, head_dim })
                .into(),
        })
        .unwrap();
        for (index, layer) in cache.layers.iter().enumerate() {
            for (block, head, slot) in every_slot(layer) {
                let mark = vec![mark(index, block, head, slot); layer.head_dim];
                let negative: Vec<f32> = mark.iter().map(|x| -x).collect();
                // SAFETY: single-threaded.
                unsafe {
                    let head = layer.head(head);
                    head.write_key(Level::Portable, block, slot, &mark);
                    head.write_value(Level::Portable, block, slot, &negative);
                }
            }
        }
        cache
    }

    fn mark(layer: usize, block: usize, head: usize, slot: usize) -> f32 {
        (layer * 1000 + block * 100 + head * 16 + slot) as f32
    }

    fn every_slot(layer: &KvLayer) -> impl Iterator<Item = (usize, usize, usize)> {
        let heads = layer.kv_heads;
        (0..3 * heads * 16).map(move |at| (at / (heads * 16), at / 16 % heads, at % 16))
    }

    /// Check that block `b` holds the initial contents of block `from[b]`.
    fn assert_holds(cache: &KvCache, from: [usize; 3]) {
        for (index, layer) in cache.layers.iter().enumerate() {
            for (block, head, slot) in every_slot(layer) {
                let mark = mark(index, from[block], head, slot);
                for dim in 0..layer.head_dim {
                    // SAFETY: single-threaded; in bounds.
                    unsafe {
                        let tile = layer.head(head).tile(block, slot);
                        let key = *tile.cast::<f32>().add(dim * 16 + slot % 16);
                        let at = slot % 16 * layer.value_stride() + dim;
                        assert_eq!(key, mark);
                        let values = tile.add(layer.tile_layout().values);
                        assert_eq!(*values.cast::<f32>().add(at), -mark);
                    }
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

    #[test]
    fn the_bytes_of_a_block_are_the_parts_of_its_layers_in_order() {
        let cache = marked();
        let mut bytes = vec![0; cache.block_bytes()];
        // SAFETY: single-threaded.
        unsafe { cache.read_block(1, &mut bytes) };
        let mut rest = bytes.as_slice();
        for (index, layer) in cache.layers.iter().enumerate() {
            let part = rest.split_off(..layer.block_bytes()).unwrap();
            // The key of the first slot of the first head.
            let first = f32::from_ne_bytes(*part.first_chunk().unwrap());
            assert_eq!(first, mark(index, 1, 0, 0));
        }
        assert!(rest.is_empty());
    }
}
