//! What becomes of dot products: results of the matrix, added to the residual, or activated.

use super::dots::{ByteDots, Dots};
use super::rows::RowScale;
use super::weights::ByteMatrix;
use crate::pack::layout::PANEL_COLUMNS;
use crate::simd::Lanes;

/// What is done with a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bert) enum Finish {
    Store,
    /// Add to what is there.
    Add,
    /// Store its GELU.
    Gelu,
}

/// Where results go: row `r`, output `o` to `out[r * outputs + o]`.
#[derive(Debug, Clone, Copy)]
pub(in crate::bert) struct Target {
    pub out: *mut f32,
    pub finish: Finish,
}

/// Half-width of the range in which [`gelu`] is not 0 or x.
const GELU_RANGE: f32 = 4.4;

/// Coefficients of (Φ(x) - 1/2) / x as a polynomial of x², the least error of x · Φ(x) in the range first.
const GELU: [f32; 9] = [
    0.398_761_84,
    -0.066_076_89,
    9.643_326_5e-3,
    -1.055_084_5e-3,
    8.430_854e-5,
    -4.726_382e-6,
    1.741_697_1e-7,
    -3.756_598e-9,
    3.572_592e-11,
];

/// `x · Φ(x)` within 1e-4, which is a hundredth of a step of the codes that it becomes.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn gelu<L: Lanes>(x: L) -> L {
    // SAFETY: the caller's promise.
    unsafe {
        let near = x.clamp(GELU_RANGE);
        let square = near.mul(near);
        let mut p = L::splat(GELU[8]);
        for coefficient in GELU[..8].iter().rev() {
            p = p.mul_add(square, L::splat(*coefficient));
        }
        near.mul_add(p, L::splat(0.5)).mul(x)
    }
}

/// Finish the dot products of `rows` rows with `PANELS` panels from panel `panel` on.
///
/// # Safety
/// `dots` is `[rows][PANELS]`; the target is valid for these rows, from its first one on, and the matrix's outputs; the
/// level's instructions are enabled.
#[inline(always)]
pub(super) unsafe fn finish<L: ByteDots, const PANELS: usize>(
    dots: &[Dots],
    scales: &[RowScale],
    matrix: &ByteMatrix,
    panel: usize,
    target: Target,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match target.finish {
            Finish::Store => each::<L, Stored, PANELS>(dots, scales, matrix, panel, target.out),
            Finish::Add => each::<L, Added, PANELS>(dots, scales, matrix, panel, target.out),
            Finish::Gelu => each::<L, Activated, PANELS>(dots, scales, matrix, panel, target.out),
        }
    }
}

/// What is stored for a result `x` where `out` is. A trait, because closures are not inlined into functions that enable
/// instructions.
trait Finished {
    /// # Safety
    /// Sixteen values at `out`; the level's instructions are enabled.
    unsafe fn of<L: Lanes>(x: L, out: *const f32) -> L;
}

struct Stored;
struct Added;
struct Activated;

impl Finished for Stored {
    #[inline(always)]
    unsafe fn of<L: Lanes>(x: L, _out: *const f32) -> L {
        x
    }
}

impl Finished for Added {
    #[inline(always)]
    unsafe fn of<L: Lanes>(x: L, out: *const f32) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load(out).add(x) }
    }
}

impl Finished for Activated {
    #[inline(always)]
    unsafe fn of<L: Lanes>(x: L, _out: *const f32) -> L {
        // SAFETY: the caller's promise.
        unsafe { gelu(x) }
    }
}

/// Store what is made of every result.
///
/// # Safety
/// As [`finish`].
#[inline(always)]
unsafe fn each<L: ByteDots, F: Finished, const PANELS: usize>(
    dots: &[Dots],
    scales: &[RowScale],
    matrix: &ByteMatrix,
    panel: usize,
    out: *mut f32,
) {
    let outputs = matrix.outputs();
    for at in 0..PANELS {
        let column = (panel + at) * PANEL_COLUMNS;
        // SAFETY: sixteen values for each panel; the rest is the caller's promise.
        unsafe {
            let scale = L::load(matrix.scales[column..][..PANEL_COLUMNS].as_ptr());
            let sum = L::load(matrix.sums[column..][..PANEL_COLUMNS].as_ptr());
            let bias = L::load(matrix.bias[column..][..PANEL_COLUMNS].as_ptr());
            for (row, row_scale) in scales.iter().enumerate() {
                let dots = L::load_i32_plus(dots[row * PANELS + at].as_ptr(), 0);
                let start = sum.mul_add(L::splat(row_scale.low), bias);
                let value = dots.mul(L::splat(row_scale.step)).mul_add(scale, start);
                let to = out.add(row * outputs + column);
                F::of(value, to).store(to);
            }
        }
    }
}
