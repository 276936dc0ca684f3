//! GEMM with float panels: f32 activations, accumulated in f32 in input order.

use super::{Activations, Output, Panel};
use crate::dispatch::Level;
use crate::pack::{PANEL_COLUMNS, PanelKind};
use crate::simd::{Lanes, by_level, prefetch_line};

/// Element type of a panel.
trait Element {
    /// Load 16 elements as floats.
    ///
    /// # Safety
    /// As [`Lanes::load`].
    unsafe fn load<L: Lanes>(from: *const u8) -> L;
    const BYTES: usize;
}

struct F32;
struct F16;
struct Bf16;

impl Element for F32 {
    const BYTES: usize = 4;
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load(from.cast()) }
    }
}

impl Element for F16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load_f16(from.cast()) }
    }
}

impl Element for Bf16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load_bf16(from.cast()) }
    }
}

/// Largest row count for which panels are multiplied one at a time: with few rows the panels are streamed from memory.
pub(super) const SINGLE_PANEL_ROWS: usize = 8;

/// Panels that are multiplied together where the level has the registers. Each broadcast activation is then used three times,
/// so that loads keep up with the multiply-adds: 11 for 24 of them instead of 9 for 8.
pub(super) const MAX_PANELS: usize = 3;

/// Multiply `ROWS` rows with `PANELS` whole panels, as `ROWS * PANELS` independent multiply-add chains.
///
/// # Safety
/// As [`super::Gemm::panels_of_rows`] for `ROWS` rows at `x`, with the level's instructions enabled.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
unsafe fn block<L: Lanes, E: Element, const ROWS: usize, const PANELS: usize>(
    panel: Panel,
    prefetch: bool,
    x: *const f32,
    x_stride: usize,
    output: Output,
) {
    // SAFETY: the caller's promise: whole panels, `ROWS` rows of activations and of output.
    unsafe {
        let mut sums = [[L::splat(0.0); ROWS]; PANELS];
        let step = PANEL_COLUMNS * E::BYTES;
        let panel_bytes = panel.inputs * step;
        for input in 0..panel.inputs {
            let at = input * step;
            let mut weights = [L::splat(0.0); PANELS];
            for one in 0..PANELS {
                if prefetch && at.is_multiple_of(64) {
                    prefetch_line(panel.next.wrapping_add(one * panel_bytes + at));
                }
                weights[one] = E::load(panel.data.add(one * panel_bytes + at));
            }
            for row in 0..ROWS {
                let x = L::splat(*x.add(row * x_stride + input));
                for one in 0..PANELS {
                    sums[one][row] = x.mul_add(weights[one], sums[one][row]);
                }
            }
        }
        // Through memory: a larger loop over the sums is not unrolled, and then they are kept in memory all the time.
        let mut results = [[[0.0; PANEL_COLUMNS]; ROWS]; PANELS];
        for one in 0..PANELS {
            for row in 0..ROWS {
                sums[one][row].store(results[one][row].as_mut_ptr());
            }
        }
        for (one, results) in results.iter().enumerate() {
            let output = output.skip_columns(one * PANEL_COLUMNS);
            for (row, result) in results.iter().enumerate() {
                output.write(row, ROWS, [L::load(result.as_ptr())]);
            }
        }
    }
}

/// # Safety
/// As [`super::Gemm::panels_of_rows`] with `PANELS` panels of `E`, with the level's instructions enabled.
#[inline(always)]
unsafe fn multiply_body<L: Lanes, E: Element, const PANELS: usize>(
    panel: Panel,
    activations: &Activations,
    rows: usize,
    output: Output,
) {
    let (x, stride) = (activations.float, activations.float_stride);
    let mut row = 0;
    while row < rows {
        // SAFETY: `row + size ≤ rows`, for which the caller vouches.
        unsafe {
            let x = x.add(row * stride);
            let output = Output {
                out: output.out.add(row * output.stride),
                ..output
            };
            row += match rows - row {
                8.. => {
                    block::<L, E, 8, PANELS>(panel, row == 0, x, stride, output);
                    8
                }
                4.. => {
                    block::<L, E, 4, PANELS>(panel, row == 0, x, stride, output);
                    4
                }
                2.. => {
                    block::<L, E, 2, PANELS>(panel, row == 0, x, stride, output);
                    2
                }
                _ => {
                    block::<L, E, 1, PANELS>(panel, row == 0, x, stride, output);
                    1
                }
            };
        }
    }
}

/// # Safety
/// As [`super::Gemm::panels_of_rows`] with `panels` panels of `E`, with the level's instructions enabled.
#[inline(always)]
unsafe fn multiply_panels<L: Lanes, E: Element>(
    panel: Panel,
    panels: usize,
    activations: &Activations,
    rows: usize,
    output: Output,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if L::WIDE && panels == MAX_PANELS {
            return multiply_body::<L, E, MAX_PANELS>(panel, activations, rows, output);
        }
        let bytes = panel.inputs * PANEL_COLUMNS * E::BYTES;
        for one in 0..panels {
            let panel = Panel {
                data: panel.data.add(one * bytes),
                next: panel.next.wrapping_add(one * bytes),
                ..panel
            };
            let output = output.skip_columns(one * PANEL_COLUMNS);
            multiply_body::<L, E, 1>(panel, activations, rows, output);
        }
    }
}

/// # Safety
/// As [`super::Gemm::panels_of_rows`], with the level's instructions enabled.
#[inline(always)]
unsafe fn multiply_kind<L: Lanes>(
    kind: PanelKind,
    panel: Panel,
    panels: usize,
    activations: &Activations,
    rows: usize,
    output: Output,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match kind {
            PanelKind::F32 => multiply_panels::<L, F32>(panel, panels, activations, rows, output),
            PanelKind::F16 => multiply_panels::<L, F16>(panel, panels, activations, rows, output),
            PanelKind::Bf16 => multiply_panels::<L, Bf16>(panel, panels, activations, rows, output),
            PanelKind::Quant(_) => unreachable!("quantised panels take int8 activations"),
        }
    }
}

by_level! {
    /// # Safety
    /// As [`super::Gemm::panels_of_rows`].
    unsafe fn multiply_by_level(kind: PanelKind, panel: Panel, panels: usize, activations: &Activations, rows: usize, output: Output) = multiply_kind;
}

/// Multiply with `panels` consecutive panels, the first of which is `panel`. See [`super::Gemm::panels`].
///
/// # Safety
/// As there.
pub(super) unsafe fn multiply(
    level: Level,
    kind: PanelKind,
    panel: Panel,
    panels: usize,
    activations: &Activations,
    rows: usize,
    output: Output,
) {
    // SAFETY: the caller's promise.
    unsafe { multiply_by_level(level, kind, panel, panels, activations, rows, output) }
}
