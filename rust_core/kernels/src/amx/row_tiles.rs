//! Activation codes as tile registers load them: 16 rows of a group, one under the other.
//!
//! A tile load takes one distance between rows, and the four-row tiles that the other kernels walk (see
//! `activation_quant.rs`) have two. The codes are therefore copied once, when they are quantised; every panel
//! of a phase then uses the copy.

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

/// Copy row `row` of some groups of the four-row tile it stands in, `tile`, to its place among these groups of
/// `row_tiles`, `[ceil(rows / 16), groups]`.
///
/// # Safety
/// `row_tiles` has room for the row, and nobody else uses the row's part of it meanwhile.
pub unsafe fn copy_row(row: usize, tile: &[TileGroup], row_tiles: *mut RowTile, groups: usize) {
    for (group, from) in tile.iter().enumerate() {
        // SAFETY: the row's codes of one group: ours alone by contract. Only these bytes are borrowed, as
        // other rows of the tile may be others'.
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
            // SAFETY: room for 32 rows.
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
