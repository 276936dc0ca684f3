//! Products of a few rows of activations with one panel of packed weights.
//!
//! Hot path. A call computes `rows × 16` results by walking the panel once for every block of rows
//! that fits the registers. What must stay true: each result is summed in input order (groups in
//! order, exact integers within a group), then outliers in order, bias and residual, whatever the number of
//! rows, so that a row's bits do not depend on its company.

#[cfg(any(target_arch = "x86_64", test))]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod float;
mod outliers;
mod portable;
mod scratch;

pub use scratch::PanelScratch;

use std::ops::Range;

use self::outliers::Outliers;
use crate::activation_quant::QuantRows;
use crate::amx::row_tiles;
use crate::dispatch::Level;
use crate::pack::layout::GROUP;
use crate::pack::{PackedMatrix, PanelKind};
use crate::simd::Lanes;

/// Activations in both forms; a form that no matrix of the phase needs is not filled.
#[derive(Debug, Clone, Copy)]
pub struct Activations {
    pub quant: Option<QuantRows>,
    /// `[rows, stride]` floats.
    pub float: *const f32,
    pub float_stride: usize,
}

/// Where results go: row `r`, column `c` of the panel at `out[r * stride + c]`.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub out: *mut f32,
    pub stride: usize,
    /// Add to what stands there (residual stream) instead of replacing it.
    pub accumulate: bool,
    /// 16 values added to each row, or null.
    pub bias: *const f32,
}

impl Output {
    /// The rows behind the first `rows` of these.
    ///
    /// # Safety
    /// There are so many rows.
    #[inline(always)]
    unsafe fn skip(self, rows: usize) -> Self {
        Self {
            // SAFETY: the caller's promise.
            out: unsafe { self.out.add(rows * self.stride) },
            ..self
        }
    }

    /// Finish a row of results: bias, residual, store.
    ///
    /// # Safety
    /// `row` is one of the output's rows; the level's instructions enabled.
    #[inline(always)]
    unsafe fn write<L: Lanes>(self, row: usize, sum: L) {
        // SAFETY: the caller's promise.
        unsafe {
            let out = self.out.add(row * self.stride);
            let sum = if self.bias.is_null() {
                sum
            } else {
                sum.add(L::load(self.bias))
            };
            if self.accumulate {
                L::load(out).add(sum).store(out)
            } else {
                sum.store(out)
            }
        }
    }
}

/// 1.5 · 2^23. Its bits plus an integer `n` of magnitude below 2^22 are the bits of the float `MAGIC + n`.
/// A dot product that starts there instead of at zero is a float at once, and
/// `(MAGIC + n) · s - MAGIC · s`, one fused operation, is `n · s` rounded once, because `MAGIC · s` is exact for
/// the eleven bits of an f16 scale.
#[cfg(any(target_arch = "x86_64", test))]
const MAGIC: f32 = 12_582_912.0;

/// Call macro `$run` with a layout as literals, so that every branch on it is decided at compile time: bits of a code, whether
/// halves of a group have scales of their own, whether scales are halves, whether there are minima, and the zero.
#[cfg(any(target_arch = "x86_64", test))]
macro_rules! by_layout {
    ($layout:expr, $run:ident) => {{
        use $crate::pack::layout::Offset;
        let layout = $layout;
        match (layout.bits, layout.group, layout.half_scales, layout.offset) {
            (4, 32, true, Offset::Min) => $run!(4, false, true, true, 0),
            (4, 32, false, Offset::Min) => $run!(4, false, false, true, 0),
            (8, 32, false, Offset::Min) => $run!(8, false, false, true, 0),
            (4, 32, true, Offset::Zero(zero)) => $run!(4, false, true, false, zero),
            (8, 32, true, Offset::Zero(zero)) => $run!(8, false, true, false, zero),
            (8, 16, false, Offset::Zero(zero)) => $run!(8, true, false, false, zero),
            _ => unreachable!("no format has panels of {layout:?}"),
        }
    }};
}
#[cfg(any(target_arch = "x86_64", test))]
use by_layout;

/// One panel, as the level's kernels see it.
#[derive(Debug, Clone, Copy)]
struct Panel {
    data: *const u8,
    /// First byte of the panel that comes next, to be prefetched; the same one at the end.
    next: *const u8,
    inputs: usize,
}

/// What a level's kernel for quantised weights computes: some rows times one panel.
#[derive(Clone, Copy)]
struct PanelProduct {
    panel: Panel,
    x: QuantRows,
    rows: usize,
    outliers: Outliers,
    output: Output,
}

impl PanelProduct {
    fn groups(&self) -> usize {
        self.panel.inputs / GROUP
    }

    /// The same for the rows behind the first `rows`, which are whole tiles, and on level `amx` whole row tiles where
    /// these are still needed.
    ///
    /// # Safety
    /// There are so many rows.
    #[inline(always)]
    unsafe fn skip(self, rows: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                x: self.x.skip(rows),
                rows: self.rows - rows,
                outliers: self.outliers.skip(rows),
                output: self.output.skip(rows),
                ..self
            }
        }
    }
}

/// Products of the same rows with panels of any matrices; each worker has its own.
pub struct Products<'a> {
    level: Level,
    activations: &'a Activations,
    rows: usize,
    scratch: &'a mut PanelScratch,
    /// Whether the rows' outliers are listed in the scratch: not before anything is multiplied.
    listed: bool,
}

impl<'a> Products<'a> {
    /// Products of `rows` rows of `activations`.
    ///
    /// # Safety
    /// The machine has the level. Whenever a panel is multiplied, the activations hold `rows` rows, in the form that the
    /// matrices to come take, and nobody changes them from the first one on.
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

    /// Multiply with panel `panel` of `matrix`.
    ///
    /// `next` is the panel that the caller will ask for next; it is fetched into the cache meanwhile.
    ///
    /// # Safety
    /// The rows have `matrix.inputs` values in the form that `matrix.kind` takes; `output` is valid for as many
    /// rows of 16, and nobody else uses these.
    pub unsafe fn panel(
        &mut self,
        matrix: &PackedMatrix,
        panel: usize,
        next: *const u8,
        output: Output,
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.panel_rows(matrix, panel, 0..self.rows, next, output) }
    }

    /// The same for rows `rows` alone, from a multiple of 16 on; of `output` only these are written.
    ///
    /// # Safety
    /// As [`Products::panel`], for these rows.
    pub unsafe fn panel_rows(
        &mut self,
        matrix: &PackedMatrix,
        panel: usize,
        rows: Range<usize>,
        next: *const u8,
        output: Output,
    ) {
        assert!(rows.start.is_multiple_of(row_tiles::ROWS) && rows.end <= self.rows);
        if rows.is_empty() {
            return;
        }
        let (level, first, rows) = (self.level, rows.start, rows.len());
        let panel = Panel {
            data: matrix.panel(panel),
            next,
            inputs: matrix.inputs,
        };
        // SAFETY: conditions are the caller's.
        unsafe {
            let output = output.skip(first);
            let PanelKind::Quant(layout) = matrix.kind else {
                let x = Activations {
                    float: self
                        .activations
                        .float
                        .add(first * self.activations.float_stride),
                    ..*self.activations
                };
                return float::multiply(level, matrix.kind, panel, &x, rows, output);
            };
            let x = self
                .activations
                .quant
                .expect("activations of the matrix's kind");
            assert_eq!(x.inputs, matrix.inputs);
            if !std::mem::replace(&mut self.listed, true) {
                self.scratch.outliers.list(x, self.rows);
            }
            let product = PanelProduct {
                panel,
                x: x.skip(first),
                rows,
                outliers: self.scratch.outliers.meet(level, layout, panel).skip(first),
                output,
            };
            match level {
                #[cfg(target_arch = "x86_64")]
                Level::Amx => amx::multiply(layout, product, &mut self.scratch.expanded),
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => avx512::multiply(layout, product, &mut self.scratch.expanded),
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => avx2::multiply(layout, product),
                _ => portable::multiply(layout, product),
            }
        }
    }
}

#[cfg(test)]
mod bit_exact;
#[cfg(test)]
mod tests;
