//! Products of a few rows of activations with one panel of packed weights.
//!
//! Hot path. A call computes `rows × 16` results by walking the panel once for every block of rows
//! that fits the registers. What must stay true: each result is summed in input order (groups in
//! order, exact integers within a group) whatever the number of rows, so that a row's bits do not
//! depend on its company.

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

use crate::activation_quant::QuantRows;
use crate::dispatch::Level;
use crate::pack::{PackedMatrix, PanelKind};

/// Activations in both forms; a form that no matrix of the phase needs is not filled.
#[derive(Debug, Clone, Copy)]
pub struct Activations {
    pub quant: QuantRows,
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

/// One panel, as the level's kernels see it.
#[derive(Debug, Clone, Copy)]
struct Panel {
    data: *const u8,
    /// First byte of the panel that comes next, to be prefetched; the same one at the end.
    next: *const u8,
    inputs: usize,
}

/// Multiply `rows` rows of `activations` with panel `panel` of `matrix`.
///
/// `next` is the panel that the caller will ask for next; it is fetched into the cache meanwhile.
///
/// # Safety
/// The machine has the level. The activations hold `rows` rows of `matrix.inputs` in the form that
/// `matrix.kind` takes; `output` is valid for `rows` rows of 16. Nobody else uses these or `scratch`.
#[allow(clippy::too_many_arguments)]
pub unsafe fn multiply_panel(
    level: Level,
    matrix: &PackedMatrix,
    panel: usize,
    next: *const u8,
    activations: &Activations,
    rows: usize,
    output: Output,
    scratch: &PanelScratch,
) {
    debug_assert!(level.available());
    assert!(matrix.inputs <= scratch.inputs());
    let panel = Panel {
        data: matrix.panel(panel),
        next,
        inputs: matrix.inputs,
    };
    // SAFETY: conditions are the caller's.
    unsafe {
        let PanelKind::Quant(layout) = matrix.kind else {
            return float::multiply(level, matrix.kind, panel, activations, rows, output);
        };
        debug_assert_eq!(activations.quant.inputs, matrix.inputs);
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Amx => amx::multiply(layout, panel, activations.quant, rows, output, scratch),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                avx512::multiply(layout, panel, activations.quant, rows, output, scratch)
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::multiply(layout, panel, activations.quant, rows, output),
            _ => portable::multiply(layout, panel, activations.quant, rows, output),
        }
        outliers::add(level, layout, panel, activations.quant, rows, output);
    }
}

#[cfg(test)]
mod bit_exact;
#[cfg(test)]
mod tests;
