//! Causal and sliding-window masks: which positions of a chunk a token sees.

use super::CHUNK;
use crate::simd::{LANES, Lanes};

/// The positions of a chunk, relative to its start.
const POSITIONS: [[f32; LANES]; CHUNK / LANES] = {
    let mut positions = [[0.0; LANES]; CHUNK / LANES];
    let mut at = 0;
    while at < CHUNK {
        positions[at / LANES][at % LANES] = at as f32;
        at += 1;
    }
    positions
};

/// Positions `first..end` of a chunk, relative to its start. Slots from `end` on may hold any bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visible {
    pub first: usize,
    pub end: usize,
}

impl Visible {
    /// Whether it includes all of the first `tiles` tiles.
    pub fn covers(self, tiles: usize) -> bool {
        self.first == 0 && self.end >= tiles * LANES
    }

    /// `values` of tile `tile`, with `hidden` in place of the positions that are not visible.
    ///
    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    pub unsafe fn select<L: Lanes>(self, tile: usize, values: L, hidden: L) -> L {
        // SAFETY: the caller's promise; sixteen lanes.
        unsafe {
            let position = L::load(POSITIONS[tile].as_ptr());
            let values = position.select_less(L::splat(self.end as f32), values, hidden);
            position.select_less(L::splat(self.first as f32), hidden, values)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Level;
    use crate::simd::by_level;

    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn select_body<L: Lanes>(visible: Visible, tile: usize, hidden: f32) -> [f32; LANES] {
        // SAFETY: by_level enables the instructions.
        unsafe {
            let selected = visible.select(tile, L::splat(1.0), L::splat(hidden));
            selected.to_array()
        }
    }

    by_level! {
        /// # Safety
        /// The machine has the level.
        unsafe fn select(visible: Visible, tile: usize, hidden: f32) -> [f32; LANES] = select_body;
    }

    #[test]
    fn invisible_positions_are_masked() {
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            for (first, end) in [(0, 0), (0, 1), (0, 64), (3, 40), (17, 32), (64, 64)] {
                let visible = Visible { first, end };
                for tile in 0..CHUNK / LANES {
                    // SAFETY: the level is available.
                    let selected = unsafe { select(level, visible, tile, -1.0) };
                    for (lane, x) in selected.into_iter().enumerate() {
                        let seen = (first..end).contains(&(tile * LANES + lane));
                        assert_eq!(x == 1.0, seen, "{level:?} {visible:?} {tile} {lane}");
                    }
                }
            }
        }
    }
}
