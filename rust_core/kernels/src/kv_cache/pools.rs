//! The KV caches of a model: one for the layers that keep every token, and one for those that keep a window only.
//!
//! The second has fewer blocks. A step says which of them holds the keys and values that these layers have of a block.

use super::{KvCache, KvLayer, KvShape};
use crate::error::KernelError;

/// Storage of all layers.
#[derive(Debug)]
pub struct KvPools {
    /// The layers that keep every token.
    pub full: KvCache,
    /// The layers that keep a window; None if they are in `full` too.
    pub windows: Option<KvCache>,
    /// For each layer: whether it is in `windows`, and its index there or in `full`.
    places: Vec<(bool, usize)>,
}

impl KvPools {
    /// Reserve the caches.
    ///
    /// # Errors
    /// As [`KvCache::new`].
    pub fn new(shapes: KvShapes) -> Result<Self, KernelError> {
        let mut counts = [0, 0];
        let place = |&windowed: &bool| {
            let count = &mut counts[usize::from(windowed)];
            *count += 1;
            (windowed, *count - 1)
        };
        Ok(Self {
            places: shapes.windowed.iter().map(place).collect(),
            full: KvCache::new(shapes.full)?,
            windows: shapes.windows.map(KvCache::new).transpose()?,
        })
    }

    /// Whether layer `index` keeps a window only.
    #[inline(always)]
    pub fn is_windowed(&self, index: usize) -> bool {
        self.places[index].0
    }

    /// Layer `index` of the model's cached layers.
    #[inline(always)]
    pub fn layer(&self, index: usize) -> &KvLayer {
        let (windowed, at) = self.places[index];
        match &self.windows {
            Some(windows) if windowed => windows.layer(at),
            _ => self.full.layer(at),
        }
    }

    /// Bytes of both.
    pub fn bytes(&self) -> usize {
        self.full.bytes() + self.windows.as_ref().map_or(0, KvCache::bytes)
    }
}

/// Dimensions of both caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvShapes {
    pub full: KvShape,
    pub windows: Option<KvShape>,
    /// For each cached layer, whether it is in `windows`.
    pub windowed: Vec<bool>,
}

impl KvShapes {
    /// Divide the layers of `shape`: those that are `windowed` get `blocks` blocks of their own. With 0 blocks all of
    /// them stay together.
    pub fn divide(shape: KvShape, windowed: &[bool], blocks: usize) -> Self {
        if blocks == 0 || !windowed.contains(&true) {
            return Self {
                windowed: vec![false; shape.layers.len()],
                full: shape,
                windows: None,
            };
        }
        let of = |wanted: bool, blocks: usize| {
            let layers = shape.layers.iter().zip(windowed);
            let layers = layers.filter(|(_, windowed)| **windowed == wanted);
            KvShape {
                blocks,
                layers: layers.map(|(heads, _)| *heads).collect(),
                ..shape.clone()
            }
        };
        Self {
            full: of(false, shape.blocks),
            windows: Some(of(true, blocks)),
            windowed: windowed.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv_cache::{KvDtype, KvHeads};

    fn shape() -> KvShape {
        let layers = [8, 16, 24, 32];
        KvShape {
            dtype: KvDtype::F32,
            blocks: 7,
            block_size: 16,
            layers: layers
                .map(|head_dim| KvHeads {
                    kv_heads: 1,
                    head_dim,
                })
                .into(),
        }
    }

    #[test]
    fn layers_with_a_window_have_blocks_of_their_own() {
        let shapes = KvShapes::divide(shape(), &[true, false, true, false], 3);
        let windows = shapes.windows.clone().unwrap();
        assert_eq!((shapes.full.blocks, windows.blocks), (7, 3));
        let all = shape().block_bytes().unwrap();
        let (full, window) = (
            shapes.full.block_bytes().unwrap(),
            windows.block_bytes().unwrap(),
        );
        assert_eq!(full + window, all);
        let pools = KvPools::new(shapes).unwrap();
        assert_eq!(pools.bytes(), 7 * full + 3 * window);
        let dims = |index| pools.layer(index).head_dim;
        assert_eq!([0, 1, 2, 3].map(dims), [8, 16, 24, 32]);
        assert_eq!(
            [0, 1, 2, 3].map(|index| pools.is_windowed(index)),
            [true, false, true, false]
        );
    }

    #[test]
    fn without_blocks_for_windows_all_layers_are_together() {
        for (windowed, blocks) in [([true, false, false, false], 0), ([false; 4], 3)] {
            let shapes = KvShapes::divide(shape(), &windowed, blocks);
            assert_eq!(shapes.full, shape());
            let pools = KvPools::new(shapes).unwrap();
            assert!(pools.windows.is_none());
            assert!((0..4).all(|index| !pools.is_windowed(index)));
        }
    }
}
