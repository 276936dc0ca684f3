//! Software prefetch of the next chunk's keys and values.
//!
//! The blocks of a context are not contiguous, so the hardware prefetcher cannot predict them, and a core has at most
//! some dozen cache lines in flight. Prefetching a whole chunk ahead, at an even rate, keeps them busy.

use super::CHUNK;
use crate::kv_cache::KvLayer;
use crate::simd::{LANES, prefetch_line};

/// Tiles of sixteen positions in a chunk.
pub(super) const TILES: usize = CHUNK / LANES;

const LINE: usize = 64;

/// The KV cache tiles of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiles {
    /// Entries after the last tile that holds positions repeat the first one.
    pub(super) tiles: [*const u8; TILES],
    /// Positions that some row sees.
    pub(super) positions: usize,
    /// Bytes of a tile's keys and values, and of the visible positions of the last tile.
    tile_bytes: usize,
    last_bytes: usize,
}

impl Tiles {
    /// No positions.
    pub const NONE: Self = Self {
        tiles: [std::ptr::null(); TILES],
        positions: 0,
        tile_bytes: 0,
        last_bytes: 0,
    };

    /// `positions` positions; `next` returns their tiles one by one.
    pub(super) fn new(kv: &KvLayer, positions: usize, mut next: impl FnMut() -> *const u8) -> Self {
        if positions == 0 {
            return Self::NONE;
        }
        let mut tiles = [next(); TILES];
        for tile in &mut tiles[1..positions.div_ceil(LANES)] {
            *tile = next();
        }
        let last = positions - (positions - 1) / LANES * LANES;
        Self {
            tiles,
            positions,
            tile_bytes: kv.bytes_of(LANES),
            last_bytes: kv.bytes_of(last),
        }
    }

    /// Number of tiles that hold positions.
    pub(super) fn count(&self) -> usize {
        self.positions.div_ceil(LANES)
    }
}

/// Cache lines to prefetch, a few at a time.
pub(super) struct Prefetcher {
    /// Start and number of lines of each tile.
    parts: [(*const u8, usize); TILES],
    end: usize,
    at: usize,
    line: *const u8,
    left: usize,
    /// Number of lines.
    pub total: usize,
}

impl Prefetcher {
    /// The lines of `tiles`.
    pub fn new(tiles: &Tiles) -> Self {
        let mut prefetcher = Self {
            parts: [(std::ptr::null(), 0); TILES],
            end: 0,
            at: 0,
            line: std::ptr::null(),
            left: 0,
            total: 0,
        };
        if let Some((last, whole)) = tiles.tiles[..tiles.count()].split_last() {
            for tile in whole {
                prefetcher.add(*tile, tiles.tile_bytes);
            }
            prefetcher.add(*last, tiles.last_bytes);
        }
        prefetcher
    }

    fn add(&mut self, start: *const u8, bytes: usize) {
        let lines = bytes.div_ceil(LINE);
        self.parts[self.end] = (start, lines);
        self.end += 1;
        self.total += lines;
    }

    /// Prefetch the next `count` lines.
    #[inline(always)]
    pub fn next(&mut self, count: usize) {
        for _ in 0..count {
            if self.left == 0 {
                if self.at == self.end {
                    return;
                }
                (self.line, self.left) = self.parts[self.at];
                self.at += 1;
            }
            prefetch_line(self.line);
            self.line = self.line.wrapping_add(LINE);
            self.left -= 1;
        }
    }
}
