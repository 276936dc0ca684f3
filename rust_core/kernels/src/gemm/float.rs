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

/// Multiply `ROWS` rows with the whole panel, as `ROWS` independent multiply-add chains.
///
/// # Safety
/// As [`super::Gemm::panels_of_rows`] for `ROWS` rows at `x`, with the level's instructions enabled.
#[inline(always)]
unsafe fn block<L: Lanes, E: Element, const ROWS: usize>(
    panel: Panel,
    prefetch: bool,
    x: *const f32,
    x_stride: usize,
    output: Output,
) {
    // SAFETY: the caller's promise: a whole panel, `ROWS` rows of activations and of output.
    unsafe {
        let mut sums = [L::splat(0.0); ROWS];
        let step = PANEL_COLUMNS * E::BYTES;
        for input in 0..panel.inputs {
            if prefetch && (input * step).is_multiple_of(64) {
                prefetch_line(panel.next.add(input * step));
            }
            let weights: L = E::load(panel.data.add(input * step));
            for (row, sum) in sums.iter_mut().enumerate() {
                *sum = L::splat(*x.add(row * x_stride + input)).mul_add(weights, *sum);
            }
        }
        for (row, sum) in sums.into_iter().enumerate() {
            output.write(row, ROWS, [sum]);
        }
    }
}

/// # Safety
/// As [`super::Gemm::panels_of_rows`] with a panel of `E`, with the level's instructions enabled.
#[inline(always)]
unsafe fn multiply_body<L: Lanes, E: Element>(
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
                    block::<L, E, 8>(panel, row == 0, x, stride, output);
                    8
                }
                4.. => {
                    block::<L, E, 4>(panel, row == 0, x, stride, output);
                    4
                }
                2.. => {
                    block::<L, E, 2>(panel, row == 0, x, stride, output);
                    2
                }
                _ => {
                    block::<L, E, 1>(panel, row == 0, x, stride, output);
                    1
                }
            };
        }
    }
}

/// # Safety
/// As [`super::Gemm::panels_of_rows`], with the level's instructions enabled.
#[inline(always)]
unsafe fn multiply_kind<L: Lanes>(
    kind: PanelKind,
    panel: Panel,
    activations: &Activations,
    rows: usize,
    output: Output,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match kind {
            PanelKind::F32 => multiply_body::<L, F32>(panel, activations, rows, output),
            PanelKind::F16 => multiply_body::<L, F16>(panel, activations, rows, output),
            PanelKind::Bf16 => multiply_body::<L, Bf16>(panel, activations, rows, output),
            PanelKind::Quant(_) => unreachable!("quantised panels take int8 activations"),
        }
    }
}

by_level! {
    /// # Safety
    /// As [`super::Gemm::panels_of_rows`].
    unsafe fn multiply_by_level(kind: PanelKind, panel: Panel, activations: &Activations, rows: usize, output: Output) = multiply_kind;
}

/// See [`super::Gemm::panels`].
///
/// # Safety
/// As there.
pub(super) unsafe fn multiply(
    level: Level,
    kind: PanelKind,
    panel: Panel,
    activations: &Activations,
    rows: usize,
    output: Output,
) {
    // SAFETY: the caller's promise.
    unsafe { multiply_by_level(level, kind, panel, activations, rows, output) }
}
