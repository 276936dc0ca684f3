//! Activations in the forms that products take: prepared at the beginning of a phase, or where a phase before
//! computes them.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;

use super::{Step, meet};
use crate::activation_quant::{
    GroupColumn, QuantRows, RowsNorm, ScaleMode, TILE_ROWS, quantize_row, quantize_tile,
};
use crate::amx::row_tiles::{ROWS, copy_row};
use crate::dispatch::Level;
use crate::gemm::Activations;
use crate::norm::{rms_norm, rms_scale, rms_scales_of_tile};
use crate::pack::layout::{GROUP, QuantLayout};
use crate::pack::{PANEL_COLUMNS, PanelKind};
use crate::phase_clock::Phase;
use crate::pool::Worker;
use crate::scratch::{QuantBuffers, REDUNDANT_ROWS, WorkerScratch};
use crate::simd::prefetch_line;
use crate::weights::Linear;
use crate::work_share::Parts;

/// The scales of what `users` take: powers of two help where all weights are pairs of integers.
pub(super) fn scale_mode_for(users: &[&Linear]) -> ScaleMode {
    let paired = |user: &&Linear| user.matrix.kind == PanelKind::Quant(QuantLayout::PAIRED);
    if users.iter().all(paired) {
        ScaleMode::PowerOfTwo
    } else {
        ScaleMode::MaxAbs
    }
}

/// Rows that a phase reads: row `i` stands at `index(i) * stride`.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub rows: *const f32,
    pub stride: usize,
    /// Which rows; None: all in order.
    pub index: Option<&'a [usize]>,
    /// What they are normalised with, if they are.
    pub norm: Option<&'a [f32]>,
}

/// How gate and up are joined to the rows that the down projection takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Joining {
    /// As floats, panel by panel.
    Floats,
    /// As floats, and a part's groups are quantised when all of them are there: of few rows a group alone would leave
    /// most lanes empty.
    Parts,
    /// A group of all rows at once, and the floats are never written.
    Groups,
}

impl Step<'_> {
    /// Bring `rows` rows of `source` into the forms that `users` take. Where workers divide them they take tiles from
    /// `counter`, which is zero when this begins and nobody else's.
    pub(super) fn prepare<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &WorkerScratch,
        rows: usize,
        source: Source<'_>,
        users: &[&Linear],
        counter: &'w AtomicUsize,
    ) -> Activations {
        let norm = source.norm;
        let inputs = users[0].matrix.inputs;
        let quantize = users.iter().any(|user| user.matrix.kind.is_quantized());
        let redundant = rows <= REDUNDANT_ROWS;
        let buffers = if redundant {
            &own.activations
        } else {
            &self.scratch.activations
        };
        let (stride, groups) = (inputs.next_multiple_of(PANEL_COLUMNS), inputs / GROUP);
        let scale_mode = scale_mode_for(users);
        let quant = self.quant_rows(&buffers.quant, inputs, norm.is_some());
        // Floats are wanted by other products alone, and where they stand will do if nothing changes them.
        let wants_floats = users.iter().any(|user| !user.matrix.kind.is_quantized());
        let copied = wants_floats && (norm.is_some() || source.index.is_some());
        let (float, float_stride) = if copied {
            (buffers.float.ptr().cast_const(), stride)
        } else {
            (source.rows, source.stride)
        };
        let activations = Activations {
            quant: quantize.then_some(quant),
            scale_mode,
            float,
            float_stride,
        };
        if !copied && !quantize {
            return activations;
        }
        // Whole tiles, so that no two workers write the same one, and two at a time: they are prepared in less than a
        // microsecond each.
        let tiles = rows.div_ceil(TILE_ROWS);
        // The others may be a phase ahead of who is no member.
        let all = (redundant && worker.is_member()).then_some(0..tiles);
        let pairs = (!redundant).then(|| Parts::new(worker, counter, tiles.div_ceil(2), rows));
        let pairs = pairs.into_iter().flatten();
        let shared = pairs.map(|part| 2 * part.start..tiles.min(2 * part.end));
        let parts = all.into_iter().chain(shared);
        let (level, eps) = (self.model.level, self.model.spec.rms_norm_eps);
        let row_of = |row| {
            let from = source.index.map_or(row, |index| index[row]);
            source.rows.wrapping_add(from * source.stride)
        };
        let rows_of = |tile| tile * TILE_ROWS..rows.min((tile + 1) * TILE_ROWS);
        for (tile, end) in parts.flat_map(|part| part.clone().map(move |tile| (tile, part.end))) {
            let tile_rows = rows_of(tile);
            if tile + 1 < end {
                // Half of it lies in the other cores' caches.
                rows_of(tile + 1).for_each(|row| prefetch(row_of(row), inputs));
            }
            // SAFETY: rows of the source are complete (a barrier lies behind us) and have `inputs`
            // values; the buffers' tile and rows are this worker's alone; the level was checked at load.
            unsafe {
                let x = |row| std::slice::from_raw_parts(row_of(row), inputs);
                if copied {
                    for row in tile_rows.clone() {
                        let out = buffers.float.slice_mut(row * stride, inputs);
                        match norm {
                            Some(norm) => rms_norm(level, x(row), norm, eps, out),
                            None => out.copy_from_slice(x(row)),
                        }
                    }
                }
                if quantize {
                    let all = (0..groups, groups);
                    self.quantize_rows(&buffers.quant, tile_rows, x, norm, scale_mode, all);
                }
            }
        }
        if redundant {
            own.clock.lap(Phase::Prepare);
        } else {
            meet(worker, own, Phase::Prepare);
        }
        activations
    }

    /// Rows of `inputs` inputs as they stand in `buffers`.
    fn quant_rows(&self, buffers: &QuantBuffers, inputs: usize, normalized: bool) -> QuantRows {
        QuantRows {
            tiles: buffers.tiles.ptr(),
            outlier_positions: if normalized {
                buffers.outlier_positions.ptr()
            } else {
                std::ptr::null()
            },
            row_tiles: if self.model.level == Level::Amx {
                buffers.row_tiles.ptr()
            } else {
                std::ptr::null()
            },
            inputs,
        }
    }

    /// Quantise groups `groups` of rows `rows`, all of one tile, each of `all` groups; `x(row)` are the values of
    /// these groups.
    ///
    /// # Safety
    /// The buffers have room for the rows, and nobody else uses these groups of their tile.
    unsafe fn quantize_rows<'x>(
        &self,
        buffers: &QuantBuffers,
        rows: Range<usize>,
        x: impl Fn(usize) -> &'x [f32],
        norm: Option<&[f32]>,
        scale_mode: ScaleMode,
        (groups, all): (Range<usize>, usize),
    ) {
        let (level, eps) = (self.model.level, self.model.spec.rms_norm_eps);
        let first = rows.start / TILE_ROWS * all + groups.start;
        // SAFETY: the caller's promise; the level was checked at load.
        unsafe {
            let tile = buffers.tiles.slice_mut(first, groups.len());
            let mut outlier_positions =
                norm.map(|_| buffers.outlier_positions.slice_mut(first, groups.len()));
            if rows.len() == TILE_ROWS {
                let x = std::array::from_fn(|lane| x(rows.start + lane));
                let norm = norm.map(|weight| RowsNorm {
                    scales: rms_scales_of_tile(level, x, eps),
                    weight,
                });
                quantize_tile(level, x, norm, scale_mode, tile, outlier_positions);
            } else {
                for (lane, row) in rows.clone().enumerate() {
                    let norm = norm.map(|weight| RowsNorm {
                        scales: [rms_scale(level, x(row), eps)],
                        weight,
                    });
                    let outlier_positions = outlier_positions.as_deref_mut();
                    quantize_row(
                        level,
                        x(row),
                        norm,
                        scale_mode,
                        lane,
                        tile,
                        outlier_positions,
                    );
                }
            }
            if level == Level::Amx {
                for row in rows {
                    copy_row(row, tile, buffers.row_tiles.ptr().add(groups.start), all);
                }
            }
        }
    }

    /// How gate and up are joined.
    pub(super) fn joining(&self, down: &Linear, rows: usize) -> Joining {
        match down.matrix.kind.is_quantized() {
            false => Joining::Floats,
            true if rows <= REDUNDANT_ROWS => Joining::Parts,
            true => Joining::Groups,
        }
    }

    /// The joined rows, which `down` takes.
    pub(super) fn joined(&self, down: &Linear, rows: usize) -> Option<QuantRows> {
        let quantized = self.joining(down, rows) != Joining::Floats;
        quantized.then(|| self.quant_rows(&self.scratch.joined, down.matrix.inputs, false))
    }

    /// Quantise groups `groups` of `rows` joined rows, which `down` takes.
    ///
    /// # Safety
    /// This worker joined these columns, and nobody else uses them.
    pub(super) unsafe fn quantize_joined(&self, groups: Range<usize>, rows: usize, down: &Linear) {
        let (scale_mode, all) = (scale_mode_for(&[down]), down.matrix.inputs / GROUP);
        let (gate, stride) = (self.scratch.gate.ptr(), self.scratch.strides.gate);
        let (first, len) = (groups.start * GROUP, groups.len() * GROUP);
        for tile in (0..rows).step_by(TILE_ROWS) {
            // SAFETY: columns inside the rows; the rest is the caller's promise.
            unsafe {
                let x = |row| std::slice::from_raw_parts(gate.add(row * stride + first), len);
                let tile_rows = tile..rows.min(tile + TILE_ROWS);
                let joined = &self.scratch.joined;
                let groups = (groups.clone(), all);
                self.quantize_rows(joined, tile_rows, x, None, scale_mode, groups);
            }
        }
    }

    /// Where group `group` of the joined rows of `groups` groups goes, from row `first` on, which begins a row tile.
    pub(super) fn joined_group(&self, group: usize, first: usize, groups: usize) -> GroupColumn {
        let joined = &self.scratch.joined;
        let (tile, row_tile) = (first / TILE_ROWS, first / ROWS);
        GroupColumn {
            tiles: joined.tiles.ptr().wrapping_add(tile * groups + group),
            row_tiles: if self.model.level == Level::Amx {
                let row_tiles = joined.row_tiles.ptr();
                row_tiles.wrapping_add(row_tile * groups + group)
            } else {
                std::ptr::null_mut()
            },
            groups,
        }
    }
}

/// Ask for `count` floats that are read soon.
fn prefetch(floats: *const f32, count: usize) {
    for at in (0..count).step_by(PANEL_COLUMNS) {
        prefetch_line(floats.wrapping_add(at).cast());
    }
}
