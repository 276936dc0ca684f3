//! Activation codes in the layout that tile registers load: 16 rows of a group, contiguous.
//!
//! A tile load has a single row stride, but the four-row tiles that the other kernels read (see
//! `activation_quant`) have two. The codes are therefore copied once, when they are quantised, and every panel
//! of the phase reads the copy.

use crate::activation_quant::{TILE_ROWS, TileGroup};
use crate::pack::layout::GROUP;

/// Rows of a tile register.
pub const ROWS: usize = 16;

/// Codes of a group of inputs for 16 rows.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
pub struct RowTile {
    pub codes: [[i8; GROUP]; ROWS],
}

// SAFETY: plain numbers.
unsafe impl crate::arena::Plain for RowTile {}

/// Copy row `row` from its four-row tile `tile`, one entry per group, into `row_tiles`, `[ceil(rows / 16), groups]`.
///
/// # Safety
/// `row_tiles` is valid for the row, whose part of it no other thread accesses.
pub unsafe fn copy_row(row: usize, tile: &[TileGroup], row_tiles: *mut RowTile, groups: usize) {
    for (group, from) in tile.iter().enumerate() {
        // SAFETY: the row's codes of one group, exclusive by contract. Only these bytes are borrowed, as
        // other threads may write other rows of the tile.
        unsafe {
            let to = row_tiles.add(row / ROWS * groups + group);
            let to = (&raw mut (*to).codes).cast::<[i8; GROUP]>().add(row % ROWS);
            *to = from.codes[row % TILE_ROWS];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_copied_to_its_slot() {
        let (rows, groups) = (21, 3);
        let mut tiles = vec![TileGroup::default(); 6 * groups];
        for row in 0..rows {
            for group in 0..groups {
                let tile = &mut tiles[row / TILE_ROWS * groups + group];
                tile.codes[row % TILE_ROWS] = [(4 * row + group) as i8; GROUP];
            }
        }
        let empty = RowTile {
            codes: [[-1; GROUP]; ROWS],
        };
        let mut row_tiles = vec![empty; 2 * groups];
        for row in 0..rows {
            let tile = &tiles[row / TILE_ROWS * groups..][..groups];
            // SAFETY: `row_tiles` holds 32 rows.
            unsafe { copy_row(row, tile, row_tiles.as_mut_ptr(), groups) };
        }
        for row in 0..2 * ROWS {
            for group in 0..groups {
                let expected = if row < rows {
                    (4 * row + group) as i8
                } else {
                    -1
                };
                let codes = row_tiles[row / ROWS * groups + group].codes[row % ROWS];
                assert_eq!(codes, [expected; GROUP]);
            }
        }
    }
}
