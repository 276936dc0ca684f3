//! Keys and values that come next, brought nearer while those at hand are computed with.
//!
//! A context's blocks lie anywhere, so the processor cannot guess them, and a core has at most some dozen lines
//! under way at once: what is asked for a whole chunk ahead, evenly, keeps them busy all the time.

use super::CHUNK;
use crate::kv_cache::KvShape;
use crate::simd::{LANES, prefetch_line};

/// Tiles of sixteen positions in a chunk.
pub(super) const TILES: usize = CHUNK / LANES;

const LINE: usize = 64;

/// Where a chunk's positions stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiles {
    /// As many as hold positions; the others repeat the first one.
    pub(super) tiles: [*const u8; TILES],
    /// How many positions of it somebody sees.
    pub(super) positions: usize,
    /// Bytes of a tile's keys and values, and of what is seen of the last tile.
    tile_bytes: usize,
    last_bytes: usize,
}

impl Tiles {
    /// No position.
    pub const NONE: Self = Self {
        tiles: [std::ptr::null(); TILES],
        positions: 0,
        tile_bytes: 0,
        last_bytes: 0,
    };

    /// `positions` positions, whose tiles `next` names one by one.
    pub(super) fn new(
        shape: &KvShape,
        positions: usize,
        mut next: impl FnMut() -> *const u8,
    ) -> Self {
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
            tile_bytes: shape.bytes_of(LANES),
            last_bytes: shape.bytes_of(last),
        }
    }

    /// How many tiles hold positions.
    pub(super) fn count(&self) -> usize {
        self.positions.div_ceil(LANES)
    }
}

/// Lines to be asked for, a few at a time.
pub(super) struct Fetch {
    /// Where each tile begins, and its lines.
    parts: [(*const u8, usize); TILES],
    end: usize,
    at: usize,
    line: *const u8,
    left: usize,
    /// How many lines there are.
    pub total: usize,
}

impl Fetch {
    /// All of `tiles`.
    pub fn new(tiles: &Tiles) -> Self {
        let mut fetch = Self {
            parts: [(std::ptr::null(), 0); TILES],
            end: 0,
            at: 0,
            line: std::ptr::null(),
            left: 0,
            total: 0,
        };
        if let Some((last, whole)) = tiles.tiles[..tiles.count()].split_last() {
            for tile in whole {
                fetch.add(*tile, tiles.tile_bytes);
            }
            fetch.add(*last, tiles.last_bytes);
        }
        fetch
    }

    fn add(&mut self, start: *const u8, bytes: usize) {
        let lines = bytes.div_ceil(LINE);
        self.parts[self.end] = (start, lines);
        self.end += 1;
        self.total += lines;
    }

    /// Ask for the next `count` lines.
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
