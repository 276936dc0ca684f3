//! What joins the gate and up projections: `silu(gate) * up`, quantised while both are in the cache.
//!
//! Whoever computes 32 columns of both projections has a whole group of the next product's inputs for every row.
//! Sixteen rows are joined and quantised at a time, and the joined floats are never written.

use super::batch::{BATCH, Batch};
use super::{OutlierPlaces, TILE_ROWS, TileGroup};
use crate::amx::row_tiles::{ROWS, RowTile};
use crate::norm::silu_gate_body;
use crate::pack::layout::GROUP;
use crate::simd::{LANES, Lanes, by_level};

/// Where one group of all rows goes.
#[derive(Debug, Clone, Copy)]
pub struct GroupColumn {
    /// The group of the first tile; that of the next one stands `groups` entries further.
    pub tiles: *mut TileGroup,
    /// Likewise, one entry further for each tile.
    pub places: *mut OutlierPlaces,
    /// The group of the first row tile, `groups` entries from the next one's; null if nobody wants row tiles.
    pub row_tiles: *mut RowTile,
    /// Groups of a row.
    pub groups: usize,
}

/// # Safety
/// As [`quantize_gated`], with the level's instructions enabled.
#[inline(always)]
unsafe fn quantize_gated_body<L: Lanes>(
    gate: *const f32,
    up: *const f32,
    rows: usize,
    to: GroupColumn,
) {
    let mut batch = Batch::new();
    for first in (0..rows).step_by(BATCH) {
        let count = BATCH.min(rows - first);
        for (row, values) in batch.values[..count].iter_mut().enumerate() {
            for at in [0, LANES] {
                let from = (first + row) * GROUP + at;
                // SAFETY: 16 of a row's 32 floats, at 0 and 16, for `rows` rows by contract.
                unsafe {
                    let out = values.as_mut_ptr().add(at);
                    silu_gate_body::<L>(gate.add(from), up.add(from), out);
                }
            }
        }
        // SAFETY: instructions by the caller's promise.
        unsafe { batch.quantize::<L>(count) };
        for tile in 0..count.div_ceil(TILE_ROWS) {
            let at = first / TILE_ROWS + tile;
            // SAFETY: this tile's group and its places, which are ours by contract.
            unsafe {
                let lanes = tile * TILE_ROWS;
                (*to.tiles.add(at * to.groups)).fill::<TILE_ROWS>(&batch, lanes, 0);
                *to.places.add(at) = std::array::from_fn(|lane| batch.places[lanes + lane]);
            }
        }
        if !to.row_tiles.is_null() {
            const { assert!(ROWS == BATCH) };
            // SAFETY: as above, for these sixteen rows.
            unsafe { (*to.row_tiles.add(first / ROWS * to.groups)).codes = batch.codes };
        }
    }
}

by_level! {
    /// Quantise `silu(gate) * up`, 32 columns of `rows` rows, which make one group of each row.
    ///
    /// # Safety
    /// The machine has the level. `gate` and `up` hold `rows` rows of 32 floats; `to` has room for as many rows, and
    /// nobody else uses the group's part of it.
    pub unsafe fn quantize_gated(gate: *const f32, up: *const f32, rows: usize, to: GroupColumn) = quantize_gated_body;
}
