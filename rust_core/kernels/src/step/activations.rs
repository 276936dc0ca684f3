//! Activations in the forms that GEMMs take: prepared at the beginning of a phase, or by the phase that computes them.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;

use super::rows_view::RowsView;
use super::{Step, barrier_wait};
use crate::activation_quant::{
    GroupColumn, QuantForm, QuantRows, RowsNorm, ScaleMode, TILE_ROWS, quantize_row, quantize_tile,
};
use crate::amx::row_tiles::{ROWS, copy_row};
use crate::dispatch::Level;
use crate::gemm::Activations;
use crate::norm::{layer_norm, rms_norm, rms_scale, rms_scales_of_tile};
use crate::pack::layout::{GROUP, Offset};
use crate::pack::{PANEL_COLUMNS, PanelKind};
use crate::phase_clock::Phase;
use crate::pool::Worker;
use crate::scratch::{QuantBuffers, REDUNDANT_ROWS, WorkerScratch};
use crate::simd::prefetch_line;
use crate::spec::NormKind;
use crate::weights::{Linear, Norm};
use crate::work_share::Parts;

/// How rows are quantized for `users`: with outliers kept in fp32 where `keep_outliers` says so, as in rows of the residual
/// stream. Scales that are powers of two are faster where all quantized weights are packed as integer pairs.
///
/// If a norm follows ([`Linear::normalized_outputs`]), scales are as small as possible and outliers are always kept: with
/// Gemma 3 270M this makes the errors of the output projection 1.7 times smaller and those of the down projection 3 times.
pub(super) fn quant_form(users: &[&Linear], keep_outliers: bool) -> QuantForm {
    if users.iter().any(|user| user.normalized_outputs) {
        return QuantForm {
            scale_mode: ScaleMode::MaxAbs,
            keep_outliers: true,
        };
    }
    let paired = |user: &&Linear| match user.matrix.kind {
        PanelKind::Quant(layout) => layout.offset == Offset::Paired,
        _ => false,
    };
    let mut quantized = users.iter().filter(|user| user.matrix.kind.is_quantized());
    let scale_mode = if quantized.all(paired) {
        ScaleMode::PowerOfTwo
    } else {
        ScaleMode::MaxAbs
    };
    QuantForm {
        scale_mode,
        keep_outliers,
    }
}

/// The rows that a phase reads.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub rows: RowsView,
    /// Which of the rows; None: all in order.
    pub index: Option<&'a [usize]>,
    /// The norm applied to them, if any.
    pub norm: Option<&'a Norm>,
    /// Whether their outliers are kept in fp32, whatever is computed with them.
    pub keep_outliers: bool,
}

/// In what form the activated columns of a feed-forward are written for the down projection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gating {
    /// As floats, panel by panel.
    Floats,
    /// As floats; the groups of a part are quantized when the part is complete. With few rows, quantizing single groups
    /// would leave most lanes empty.
    Parts,
    /// Quantized, one group of all rows at a time; the floats are never written.
    Groups,
}

impl Gating {
    /// For `rows` rows of `down`.
    pub(super) fn of(down: &Linear, rows: usize) -> Self {
        match down.matrix.kind.is_quantized() {
            false => Self::Floats,
            true if rows <= REDUNDANT_ROWS => Self::Parts,
            true => Self::Groups,
        }
    }
}

impl Step<'_> {
    /// Prepare `rows` rows of `source` in the forms that `users` take. If workers divide them, they take tiles from
    /// `counter`, which is zero at the start and used for nothing else.
    pub(super) fn prepare<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &WorkerScratch,
        rows: usize,
        source: Source<'_>,
        users: &[&Linear],
        counter: &'w AtomicUsize,
    ) -> Activations {
        // Of a LayerNorm the floats are written first, and quantized as they are.
        let (norm, layer_norm_of) = match (self.model.spec.norm, source.norm) {
            (NormKind::Rms, norm) => (norm.map(|norm| norm.weight.as_slice()), None),
            (NormKind::Layer, norm) => (None, norm),
        };
        let inputs = users[0].matrix.inputs;
        let quantize = users.iter().any(|user| user.matrix.kind.is_quantized());
        let redundant = rows <= REDUNDANT_ROWS;
        let buffers = if redundant {
            &own.activations
        } else {
            &self.scratch.activations
        };
        let (stride, groups) = (inputs.next_multiple_of(PANEL_COLUMNS), inputs / GROUP);
        let form = quant_form(users, source.keep_outliers);
        let quant = self.quant_rows(&buffers.quant, inputs, form);
        // Floats are needed by float GEMMs alone, which read them in place if they are neither normalized nor selected.
        let needs_floats = users.iter().any(|user| !user.matrix.kind.is_quantized());
        let copied =
            layer_norm_of.is_some() || needs_floats && (norm.is_some() || source.index.is_some());
        let (float, float_stride) = if copied {
            (buffers.float.ptr().cast_const(), stride)
        } else {
            (source.rows.ptr(0).cast_const(), source.rows.stride())
        };
        let activations = Activations {
            quant: quantize.then_some(quant),
            scale_mode: form.scale_mode,
            float,
            float_stride,
        };
        if !copied && !quantize {
            return activations;
        }
        // Whole tiles, so that no two workers write the same one; two at a time, as each takes less than a microsecond.
        let tiles = rows.div_ceil(TILE_ROWS);
        // The others may be a phase ahead of an unregistered worker.
        let all = (redundant && worker.is_registered()).then_some(0..tiles);
        let pairs = (!redundant).then(|| Parts::new(worker, counter, tiles.div_ceil(2), rows));
        let pairs = pairs.into_iter().flatten();
        let shared = pairs.map(|part| 2 * part.start..tiles.min(2 * part.end));
        let parts = all.into_iter().chain(shared);
        let (level, eps) = (self.model.level, self.model.spec.norm_eps);
        let source_rows = source.rows.columns(0, inputs);
        let source_row = |row| source.index.map_or(row, |index| index[row]);
        let rows_of = |tile| tile * TILE_ROWS..rows.min((tile + 1) * TILE_ROWS);
        for (tile, end) in parts.flat_map(|part| part.clone().map(move |tile| (tile, part.end))) {
            let tile_rows = rows_of(tile);
            if tile + 1 < end {
                // Half of it is in the other cores' caches.
                let next = rows_of(tile + 1);
                next.for_each(|row| prefetch(source_rows.ptr(source_row(row)), inputs));
            }
            // SAFETY: the source's rows are complete (they were written before a barrier); only this worker uses the
            // buffers' tile and rows; the level was checked at load.
            unsafe {
                let x = |row| source_rows.row(source_row(row));
                if copied {
                    for row in tile_rows.clone() {
                        let out = buffers.float.slice_mut(row * stride, inputs);
                        match norm {
                            Some(norm) => rms_norm(level, x(row), norm, eps, out),
                            None => out.copy_from_slice(x(row)),
                        }
                        if let Some(norm) = layer_norm_of {
                            layer_norm(level, out, &norm.weight, &norm.bias, eps);
                        }
                    }
                }
                if quantize {
                    let (all, quant) = ((0..groups, groups), &buffers.quant);
                    if layer_norm_of.is_some() {
                        let x = |row| buffers.float.slice(row * stride, inputs);
                        self.quantize_rows(quant, tile_rows, x, None, form, all);
                    } else {
                        self.quantize_rows(quant, tile_rows, x, norm, form, all);
                    }
                }
            }
        }
        if redundant {
            own.clock.lap(Phase::Prepare);
        } else {
            barrier_wait(worker, own, Phase::Prepare);
        }
        activations
    }

    /// The quantized rows of `inputs` inputs in `buffers`.
    pub(super) fn quant_rows(
        &self,
        buffers: &QuantBuffers,
        inputs: usize,
        form: QuantForm,
    ) -> QuantRows {
        QuantRows {
            tiles: buffers.tiles.ptr(),
            outlier_positions: if form.keep_outliers {
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

    /// Quantize groups `groups` of rows `rows`, which belong to one tile and have `all` groups each; `x(row)` are the
    /// values of these groups.
    ///
    /// # Safety
    /// The buffers have room for the rows, and no other worker uses these groups of their tile.
    pub(super) unsafe fn quantize_rows<'x>(
        &self,
        buffers: &QuantBuffers,
        rows: Range<usize>,
        x: impl Fn(usize) -> &'x [f32],
        norm: Option<&[f32]>,
        form: QuantForm,
        (groups, all): (Range<usize>, usize),
    ) {
        let (level, eps) = (self.model.level, self.model.spec.norm_eps);
        let first = rows.start / TILE_ROWS * all + groups.start;
        // SAFETY: the caller's promise; the level was checked at load.
        unsafe {
            let tile = buffers.tiles.slice_mut(first, groups.len());
            let mut outlier_positions = form
                .keep_outliers
                .then(|| buffers.outlier_positions.slice_mut(first, groups.len()));
            let scale_mode = form.scale_mode;
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

    /// The activated rows for `down`, as the phase before wrote them, if it takes quantized rows.
    pub(super) fn gated(&self, down: &Linear) -> Option<Activations> {
        let form = quant_form(&[down], false);
        let quantized = down.matrix.kind.is_quantized();
        quantized.then(|| Activations {
            quant: Some(self.quant_rows(&self.scratch.gated, down.matrix.inputs, form)),
            scale_mode: form.scale_mode,
            float: std::ptr::null(),
            float_stride: 0,
        })
    }

    /// Quantize groups `groups` of `rows` gated rows for `down`.
    ///
    /// # Safety
    /// This worker wrote these columns, and no other worker uses them.
    pub(super) unsafe fn quantize_gated_columns(
        &self,
        groups: Range<usize>,
        rows: usize,
        down: &Linear,
    ) {
        let (form, all) = (quant_form(&[down], false), down.matrix.inputs / GROUP);
        let columns = self
            .gate_rows()
            .columns(groups.start * GROUP, groups.len() * GROUP);
        for tile in (0..rows).step_by(TILE_ROWS) {
            // SAFETY: the caller's promise.
            unsafe {
                let x = |row| columns.row(row);
                let tile_rows = tile..rows.min(tile + TILE_ROWS);
                let gated = &self.scratch.gated;
                let groups = (groups.clone(), all);
                self.quantize_rows(gated, tile_rows, x, None, form, groups);
            }
        }
    }

    /// Where group `group` of the gated rows, of `groups` groups, is written from row `first` on, which begins a row
    /// tile.
    pub(super) fn gated_group(&self, group: usize, first: usize, groups: usize) -> GroupColumn {
        self.group_of(&self.scratch.gated, group, first, groups)
    }

    /// The same of other quantized rows.
    pub(super) fn group_of(
        &self,
        gated: &QuantBuffers,
        group: usize,
        first: usize,
        groups: usize,
    ) -> GroupColumn {
        let (tile, row_tile) = (first / TILE_ROWS, first / ROWS);
        GroupColumn {
            tiles: gated.tiles.ptr().wrapping_add(tile * groups + group),
            outlier_positions: gated
                .outlier_positions
                .ptr()
                .wrapping_add(tile * groups + group),
            row_tiles: if self.model.level == Level::Amx {
                let row_tiles = gated.row_tiles.ptr();
                row_tiles.wrapping_add(row_tile * groups + group)
            } else {
                std::ptr::null_mut()
            },
            groups,
        }
    }
}

/// Prefetch `count` floats.
fn prefetch(floats: *const f32, count: usize) {
    for at in (0..count).step_by(PANEL_COLUMNS) {
        prefetch_line(floats.wrapping_add(at).cast());
    }
}
