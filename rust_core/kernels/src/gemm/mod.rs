//! GEMM: rows of activations times panels of packed weights.
//!
//! Hot path. A call computes `rows × 16` results and reads the panel once for every block of rows that fits the registers.
//!
//! Invariant: a row's bits do not depend on the other rows of the batch. Each result is accumulated in the same order for any
//! number of rows: groups in input order (exact integers within a group), the column scale if there is one, outliers in input
//! order, bias, residual.

#[cfg(any(target_arch = "x86_64", test))]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avxvnni;
mod float;
mod group_scales;
mod outliers;
mod portable;
mod scratch;

pub use scratch::PanelScratch;

use std::ops::Range;

use self::outliers::Outliers;
use crate::activation_quant::{QuantRows, ScaleMode};
use crate::amx::row_tiles;
use crate::dispatch::Level;
use crate::pack::layout::{GROUP, PANEL_COLUMNS};
use crate::pack::{PackedMatrix, PanelKind, QuantLayout};
use crate::simd::Lanes;

/// Activations of a phase, quantised and in f32. A form that no matrix of the phase reads is left unfilled.
#[derive(Debug, Clone, Copy)]
pub struct Activations {
    pub quant: Option<QuantRows>,
    /// How the quantised form was scaled.
    pub scale_mode: ScaleMode,
    /// `[rows, stride]` floats.
    pub float: *const f32,
    pub float_stride: usize,
}

/// Destination of results: row `r`, column `c` of the panel is `out[r * stride + c]`.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub out: *mut f32,
    pub stride: usize,
    /// Add to the present value (residual stream) instead of replacing it.
    pub accumulate: bool,
    /// Values added to each row, one per column, or null.
    pub bias: *const f32,
}

impl Output {
    /// This output without its first `rows` rows.
    ///
    /// # Safety
    /// There are at least `rows` rows.
    #[inline(always)]
    unsafe fn skip(self, rows: usize) -> Self {
        Self {
            // SAFETY: the caller's promise.
            out: unsafe { self.out.add(rows * self.stride) },
            ..self
        }
    }

    /// This output without its first `columns` columns and their biases.
    ///
    /// # Safety
    /// There are at least `columns` columns.
    #[inline(always)]
    unsafe fn skip_columns(self, columns: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                out: self.out.add(columns),
                bias: if self.bias.is_null() {
                    self.bias
                } else {
                    self.bias.add(columns)
                },
                ..self
            }
        }
    }

    /// Add bias and residual to the sums of rows `row..row + ROWS` and store them. Rows from `end` on are padding and skipped.
    ///
    /// # Safety
    /// Rows below `end` are in bounds of the output; the level's instructions are enabled.
    #[inline(always)]
    unsafe fn write<L: Lanes, const ROWS: usize>(
        self,
        row: usize,
        end: usize,
        mut sums: [L; ROWS],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            if !self.bias.is_null() {
                for sum in &mut sums {
                    *sum = sum.add(L::load(self.bias));
                }
            }
            let out = self.out.add(row * self.stride);
            let add = |i: usize, sum: L| {
                let out = out.add(i * self.stride);
                L::load(out).add(sum).store(out);
            };
            // One branch for all rows instead of one per row: the epilogue is a tenth of a block's time.
            if row + ROWS > end {
                for (i, sum) in sums.into_iter().enumerate().take(end.saturating_sub(row)) {
                    if self.accumulate {
                        add(i, sum);
                    } else {
                        sum.store(out.add(i * self.stride));
                    }
                }
            } else if self.accumulate {
                for (i, sum) in sums.into_iter().enumerate() {
                    add(i, sum);
                }
            } else {
                for (i, sum) in sums.into_iter().enumerate() {
                    sum.store(out.add(i * self.stride));
                }
            }
        }
    }
}

/// Call macro `$run` with the name of the layout's constant, so that every branch on it is resolved at compile time.
macro_rules! by_layout {
    ($layout:expr, $run:ident) => {
        match $layout {
            QuantLayout::Q4_0 => $run!(Q4_0),
            QuantLayout::Q4_1 => $run!(Q4_1),
            QuantLayout::Q5_0 => $run!(Q5_0),
            QuantLayout::Q5_1 => $run!(Q5_1),
            QuantLayout::Q8_0 => $run!(Q8_0),
            QuantLayout::Q4_K => $run!(Q4_K),
            QuantLayout::Q5_K => $run!(Q5_K),
            QuantLayout::Q6_K => $run!(Q6_K),
            QuantLayout::IQ4_NL => $run!(IQ4_NL),
            QuantLayout::IQ4_XS => $run!(IQ4_XS),
            QuantLayout::MXFP4 => $run!(MXFP4),
            QuantLayout::Q2_K => $run!(Q2_K),
            QuantLayout::Q3_K => $run!(Q3_K),
            other => unreachable!("no format has panels of {other:?}"),
        }
    };
}
use by_layout;

/// One panel of weights, as passed to the level's kernels.
#[derive(Debug, Clone, Copy)]
struct Panel {
    data: *const u8,
    /// First byte of the next panel, to be prefetched; the panel itself if it is the last.
    next: *const u8,
    inputs: usize,
    /// Size of the panel.
    bytes: usize,
}

impl Panel {
    /// Scales of the 16 columns, applied to the final sums, in layouts that have them.
    fn column_scales(self) -> *const f32 {
        self.data.cast()
    }

    /// The block of group `group`, which begins with its factors.
    #[inline(always)]
    fn block(self, layout: QuantLayout, group: usize) -> *const u8 {
        self.data.wrapping_add(layout.block_offset(group))
    }

    /// The codes of group `group`.
    #[inline(always)]
    fn codes(self, layout: QuantLayout, group: usize) -> *const u8 {
        self.data.wrapping_add(layout.code_offset(group))
    }

    /// The scales of group `group`.
    #[inline(always)]
    fn scales(self, layout: QuantLayout, group: usize) -> *const u8 {
        self.data.wrapping_add(layout.scale_offset(group))
    }
}

/// The level whose kernel multiplies panels of this kind: `level`, or AVX-512 where AMX has no kernel. The results have the same
/// bits.
fn kernel_level(level: Level, kind: PanelKind) -> Level {
    match kind {
        PanelKind::Quant(layout) if level == Level::Amx && !amx::has_kernel(layout) => {
            Level::Avx512
        }
        _ => level,
    }
}

/// Number of panels that the level's kernel computes at once for this kind of weights.
fn panels_at_once(level: Level, kind: PanelKind, rows: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if kernel_level(level, kind) == Level::Avx512
        && let PanelKind::Quant(layout) = kind
        && rows > avx512::single_panel_rows(layout)
    {
        return 2;
    }
    let wide = matches!(level, Level::Avx512 | Level::Amx);
    if wide && !kind.is_quantized() && rows > float::SINGLE_PANEL_ROWS {
        return float::MAX_PANELS;
    }
    1
}

/// Arguments of a quantised kernel: some rows times one panel.
#[derive(Clone, Copy)]
struct PanelGemm {
    panel: Panel,
    x: QuantRows,
    rows: usize,
    outliers: Outliers,
    output: Output,
}

impl PanelGemm {
    fn groups(&self) -> usize {
        self.panel.inputs / GROUP
    }

    /// The same without the first `rows` rows. See [`Self::advance`].
    ///
    /// # Safety
    /// There are at least `rows` rows.
    #[inline(always)]
    unsafe fn skip(mut self, rows: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe { self.advance(rows) };
        self
    }

    /// Leave out the first `rows` rows. `rows` is a multiple of the tile height, and on level `amx` of the row tile height if
    /// row tiles are still read.
    ///
    /// In place, as loops over rows need it: a copy of the struct is read in registers wider than the fields that were just
    /// written to it, and waits for them.
    ///
    /// # Safety
    /// There are at least `rows` rows.
    #[inline(always)]
    unsafe fn advance(&mut self, rows: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            self.x = self.x.skip(rows);
            self.outliers = self.outliers.skip(rows);
            self.output = self.output.skip(rows);
        }
        self.rows -= rows;
    }
}

/// GEMM of a fixed set of rows with panels of any matrices. One per worker.
pub struct Gemm<'a> {
    level: Level,
    activations: &'a Activations,
    rows: usize,
    scratch: &'a mut PanelScratch,
    /// Whether the rows' outliers have been listed in the scratch. Done at the first quantised panel.
    listed: bool,
}

impl<'a> Gemm<'a> {
    /// GEMM of `rows` rows of `activations`.
    ///
    /// # Safety
    /// The machine has the level. Whenever a panel is multiplied, the activations hold `rows` rows in the form that the matrix
    /// reads. They do not change after the first panel.
    pub unsafe fn new(
        level: Level,
        activations: &'a Activations,
        rows: usize,
        scratch: &'a mut PanelScratch,
    ) -> Self {
        debug_assert!(level.available());
        Self {
            level,
            activations,
            rows,
            scratch,
            listed: false,
        }
    }

    /// Number of panels of `matrix` computed at once for all rows. Work items should be multiples of it.
    pub fn panels_at_once(&self, matrix: &PackedMatrix) -> usize {
        panels_at_once(self.level, matrix.kind, self.rows)
    }

    /// Multiply with panels `panels` of `matrix`.
    ///
    /// The first panel writes the first 16 columns of `output` and reads the first 16 biases, the second panel the next 16, and
    /// so on. `next` is the panel that the caller will multiply afterwards; it is prefetched.
    ///
    /// # Safety
    /// The rows have `matrix.inputs` values in the form that `matrix.kind` reads. `output` is valid for these rows and columns,
    /// which no other thread accesses.
    pub unsafe fn panels(
        &mut self,
        matrix: &PackedMatrix,
        panels: Range<usize>,
        next: *const u8,
        output: Output,
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.panels_of_rows(matrix, panels, 0..self.rows, next, output) }
    }

    /// The same for rows `rows` only; `rows.start` is a multiple of 16. Other rows of `output` are not written.
    ///
    /// # Safety
    /// As [`Gemm::panels`], for these rows.
    pub unsafe fn panels_of_rows(
        &mut self,
        matrix: &PackedMatrix,
        panels: Range<usize>,
        rows: Range<usize>,
        next: *const u8,
        output: Output,
    ) {
        assert!(rows.start.is_multiple_of(row_tiles::ROWS) && rows.end <= self.rows);
        if rows.is_empty() {
            return;
        }
        // SAFETY: conditions are the caller's.
        let output = unsafe { output.skip(rows.start) };
        let at_once = panels_at_once(self.level, matrix.kind, rows.len());
        let mut panel = panels.start;
        while panel < panels.end {
            let end = panels.end.min(panel + at_once);
            let next = if end < panels.end {
                matrix.panel(end)
            } else {
                next
            };
            // SAFETY: as above.
            unsafe {
                let output = output.skip_columns((panel - panels.start) * PANEL_COLUMNS);
                self.multiply(matrix, panel..end, rows.clone(), next, output);
            }
            panel = end;
        }
    }

    /// Multiply with as many panels as are computed at once. `output` begins at row `rows.start`.
    ///
    /// # Safety
    /// As [`Gemm::panels_of_rows`].
    unsafe fn multiply(
        &mut self,
        matrix: &PackedMatrix,
        panels: Range<usize>,
        rows: Range<usize>,
        next: *const u8,
        output: Output,
    ) {
        let level = kernel_level(self.level, matrix.kind);
        let (inputs, first) = (matrix.inputs, rows.start);
        let panel = |at: usize| Panel {
            data: matrix.panel(panels.start + at),
            next,
            inputs,
            bytes: matrix.panel_bytes(),
        };
        // SAFETY: conditions are the caller's.
        unsafe {
            let PanelKind::Quant(layout) = matrix.kind else {
                let stride = self.activations.float_stride;
                let x = Activations {
                    float: self.activations.float.add(first * stride),
                    ..*self.activations
                };
                let count = panels.len();
                return float::multiply(
                    level,
                    matrix.kind,
                    panel(0),
                    count,
                    &x,
                    rows.len(),
                    output,
                );
            };
            let x = self
                .activations
                .quant
                .expect("activations of the matrix's kind");
            let scale_mode = self.activations.scale_mode;
            assert_eq!(x.inputs, inputs);
            if !std::mem::replace(&mut self.listed, true) {
                self.scratch.outliers.list(x, self.rows);
            }
            let outliers = &mut self.scratch.outliers;
            let mut gemm = |at: usize| PanelGemm {
                panel: panel(at),
                x: x.skip(first),
                rows: rows.len(),
                outliers: outliers
                    .dequantize_channels(level, layout, panel(at), at)
                    .skip(first),
                output: output.skip_columns(at * PANEL_COLUMNS),
            };
            let first_gemm = gemm(0);
            match level {
                #[cfg(target_arch = "x86_64")]
                Level::Amx => amx::multiply(layout, first_gemm, &mut self.scratch.expanded),
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 if panels.len() == 2 => {
                    let gemms = [first_gemm, gemm(1)];
                    avx512::multiply(layout, gemms, scale_mode, &mut self.scratch.expanded);
                }
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => {
                    let scratch = &mut self.scratch.expanded;
                    avx512::multiply(layout, [first_gemm], scale_mode, scratch);
                }
                #[cfg(target_arch = "x86_64")]
                Level::AvxVnni => {
                    let scratch = &mut self.scratch.expanded;
                    avxvnni::multiply(layout, first_gemm, scratch);
                }
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => avx2::multiply(layout, first_gemm),
                _ => portable::multiply(layout, first_gemm),
            }
        }
    }
}

#[cfg(test)]
mod bit_exact;
#[cfg(test)]
mod tests;
