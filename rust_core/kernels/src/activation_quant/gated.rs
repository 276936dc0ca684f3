//! Fused activation and quantisation: `act(gate) * up`, quantised while both projections are in the cache.
//!
//! A worker that has computed 32 columns of the projections has a whole group of the down projection's inputs for every row.
//! Sixteen rows are computed and quantised at a time; the float results are never written to memory.

use std::ops::Range;

use super::batch::{BATCH, Batch};
use super::{OutlierPositions, QuantForm, TILE_ROWS, TileGroup};
use crate::activation::{activate, by_activation, up_from};
use crate::amx::row_tiles::{ROWS, RowTile};
use crate::pack::layout::GROUP;
use crate::simd::{LANES, Lanes, by_level, prefetch_for_writing};
use crate::spec::Activation;

/// Destination of one group of all rows.
#[derive(Debug, Clone, Copy)]
pub struct GroupColumn {
    /// The group in the first tile; the same group of the next tile is `groups` entries further.
    pub tiles: *mut TileGroup,
    /// The group's outlier positions in the first tile, with the same stride; used only if outliers are kept.
    pub outlier_positions: *mut OutlierPositions,
    /// The group in the first row tile, with the same stride; null if row tiles are not needed.
    pub row_tiles: *mut RowTile,
    /// Groups of a row.
    pub groups: usize,
}

/// `act(gate) * up` of `out.len()` rows, or `act(gate)` if `up` is null.
///
/// # Safety
/// The level's instructions are enabled; 32 floats for each row at `gate`, and at `up` unless it is null.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
unsafe fn activate_groups<L: Lanes, const KIND: usize>(
    gate: *const f32,
    up: *const f32,
    out: &mut [[f32; GROUP]],
) {
    const VECTORS: usize = GROUP / LANES;
    let mut at = 0;
    // SAFETY: whole rows by contract.
    unsafe {
        let (pairs, rest) = out.as_chunks_mut::<2>();
        for pair in pairs {
            let values = activate::<L, KIND, { 2 * VECTORS }>(gate.add(at), up_from(up, at));
            for i in 0..values.len() {
                values[i].store(pair.as_flattened_mut().as_mut_ptr().add(i * LANES));
            }
            at += 2 * GROUP;
        }
        for row in rest {
            let values = activate::<L, KIND, VECTORS>(gate.add(at), up_from(up, at));
            for i in 0..values.len() {
                values[i].store(row.as_mut_ptr().add(i * LANES));
            }
            at += GROUP;
        }
    }
}

/// # Safety
/// As [`quantize_gated`], with the level's instructions enabled.
#[inline(always)]
unsafe fn quantize_activated<L: Lanes, const KIND: usize>(
    gate: *const f32,
    up: *const f32,
    rows: usize,
    form: QuantForm,
    to: GroupColumn,
) {
    let prefetch_tiles = |rows: Range<usize>| {
        for row in rows.step_by(TILE_ROWS) {
            let tile = to.tiles.wrapping_add(row / TILE_ROWS * to.groups);
            for line in (0..size_of::<TileGroup>()).step_by(64) {
                prefetch_for_writing(tile.cast::<u8>().wrapping_add(line));
            }
        }
    };
    prefetch_tiles(0..BATCH.min(rows));
    // Software pipelining: the activations of the next batch are computed while the current one waits for its scales.
    let (mut batch, mut next) = (&mut Batch::new(), &mut Batch::new());
    // SAFETY: whole rows by contract; instructions likewise.
    unsafe { activate_groups::<L, KIND>(gate, up, &mut batch.values[..BATCH.min(rows)]) };
    for first in (0..rows).step_by(BATCH) {
        let count = BATCH.min(rows - first);
        // SAFETY: instructions by the caller's promise.
        unsafe {
            if form.keep_outliers {
                batch.compute_scales_and_outliers::<L>(form.scale_mode, count);
            } else {
                batch.compute_scales::<L>(form.scale_mode, count);
            }
        }
        for lane in (0..count).step_by(TILE_ROWS) {
            let ahead = rows.min(first + BATCH + lane);
            let values = &mut next.values[lane..][..TILE_ROWS.min(rows - ahead)];
            prefetch_tiles(ahead..ahead + values.len());
            // SAFETY: as above.
            unsafe {
                let (gate, up) = (gate.add(ahead * GROUP), up_from(up, ahead * GROUP));
                activate_groups::<L, KIND>(gate, up, values);
                batch.round::<L>(lane);
            }
        }
        if form.keep_outliers {
            batch.extract_outliers();
        }
        for lane in (0..count).step_by(TILE_ROWS) {
            let at = (first + lane) / TILE_ROWS * to.groups;
            // SAFETY: this tile's group, exclusive by contract.
            unsafe {
                (*to.tiles.add(at)).fill::<TILE_ROWS>(batch, lane, 0);
                if form.keep_outliers {
                    *to.outlier_positions.add(at) =
                        batch.outlier_positions.as_chunks().0[lane / TILE_ROWS];
                }
            }
        }
        if !to.row_tiles.is_null() {
            const { assert!(ROWS == BATCH) };
            // SAFETY: as above, for these sixteen rows.
            unsafe { (*to.row_tiles.add(first / ROWS * to.groups)).codes = batch.codes };
        }
        std::mem::swap(&mut batch, &mut next);
    }
}

/// # Safety
/// As [`quantize_gated`], with the level's instructions enabled.
#[inline(always)]
unsafe fn quantize_gated_body<L: Lanes>(
    kind: Activation,
    gate: *const f32,
    up: *const f32,
    rows: usize,
    form: QuantForm,
    to: GroupColumn,
) {
    macro_rules! run {
        ($kind:ident) => {{
            const KIND: usize = Activation::$kind.index();
            // SAFETY: the caller's promise.
            unsafe { quantize_activated::<L, KIND>(gate, up, rows, form, to) }
        }};
    }
    by_activation!(kind, run);
}

by_level! {
    /// Quantise `act(gate) * up`, or `act(gate)` if `up` is null, for 32 columns of `rows` rows, one group of each row.
    ///
    /// # Safety
    /// The machine has the level. `gate` and `up`, unless it is null, hold `rows` rows of 32 floats. `to` is valid for `rows`
    /// rows, whose part of this group no other thread accesses.
    pub unsafe fn quantize_gated(kind: Activation, gate: *const f32, up: *const f32, rows: usize, form: QuantForm, to: GroupColumn) = quantize_gated_body;
}
