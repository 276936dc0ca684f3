//! The product of rows and a matrix.

use super::dots::{ByteDots, Dots, Operands, QUAD};
use super::finish::{Target, finish};
use super::rows::ByteRows;
use super::weights::ByteMatrix;
use crate::pack::layout::PANEL_COLUMNS;
use crate::simd::by_level;

/// Rows of the largest block of any level.
const MAX_ROWS: usize = 12;

/// Panels of the largest block of any level.
const MAX_PANELS: usize = 2;

/// Dot products of a block, one cache line for each row and panel.
#[repr(align(64))]
struct Block([Dots; MAX_ROWS * MAX_PANELS]);

/// Rows `row..row + ROWS` times panels `panel..panel + PANELS`.
///
/// # Safety
/// As [`multiply`], with the level's instructions enabled; rows and panels exist.
#[inline(always)]
unsafe fn block<L: ByteDots, const ROWS: usize, const PANELS: usize>(
    rows: &ByteRows,
    row: usize,
    matrix: &ByteMatrix,
    panel: usize,
    target: Target,
) {
    let operands = Operands {
        rows: rows.codes().wrapping_add(row * rows.stride()),
        row_stride: rows.stride(),
        panels: matrix.panel(panel),
        panel_stride: matrix.panel_stride(),
        quads: rows.stride() / QUAD,
    };
    let mut dots = Block([[0; PANEL_COLUMNS]; MAX_ROWS * MAX_PANELS]);
    // SAFETY: both have the matrix's padded inputs; the target's rows from `row` on are the caller's promise.
    unsafe {
        L::dots::<ROWS, PANELS>(operands, dots.0.as_mut_ptr());
        let target = Target {
            out: target.out.add(row * matrix.outputs()),
            ..target
        };
        let scales = &rows.scales()[row..row + ROWS];
        finish::<L, PANELS>(&dots.0, scales, matrix, panel, target);
    }
}

/// All rows times panels `panel..panel + PANELS`, in blocks of nearly equal size.
///
/// # Safety
/// As [`block`].
#[inline(always)]
unsafe fn all_rows<L: ByteDots, const PANELS: usize>(
    rows: &ByteRows,
    matrix: &ByteMatrix,
    panel: usize,
    target: Target,
) {
    let mut row = 0;
    let mut blocks = rows.rows().div_ceil(L::MAX_ROWS);
    while blocks > 0 {
        let count = (rows.rows() - row).div_ceil(blocks);
        macro_rules! run {
            ($($rows:literal)*) => {
                match count {
                    // SAFETY: the caller's promise.
                    $($rows if const { $rows <= L::MAX_ROWS } => unsafe {
                        block::<L, $rows, PANELS>(rows, row, matrix, panel, target);
                    },)*
                    _ => unreachable!("a block has from 1 to MAX_ROWS rows"),
                }
            };
        }
        run!(1 2 3 4 5 6 7 8 9 10 11 12);
        row += count;
        blocks -= 1;
    }
}

/// # Safety
/// As [`multiply`], with the level's instructions enabled.
#[inline(always)]
unsafe fn multiply_body<L: ByteDots>(rows: &ByteRows, matrix: &ByteMatrix, target: Target) {
    assert_eq!(rows.inputs(), matrix.inputs());
    const { assert!(L::MAX_ROWS <= MAX_ROWS && L::MAX_PANELS <= MAX_PANELS) };
    let mut panel = 0;
    // SAFETY: the caller's promise.
    unsafe {
        if const { L::MAX_PANELS == 2 } {
            while panel + 2 <= matrix.panels() {
                all_rows::<L, 2>(rows, matrix, panel, target);
                panel += 2;
            }
        }
        while panel < matrix.panels() {
            all_rows::<L, 1>(rows, matrix, panel, target);
            panel += 1;
        }
    }
}

by_level! {
    /// Multiply all rows with a matrix and add its bias.
    ///
    /// A result is the same for any division into blocks, and its dot product on every level.
    ///
    /// # Safety
    /// The machine has the level; the target is valid for all rows and the matrix's outputs, which no other thread accesses.
    pub(in crate::bert) unsafe fn multiply(rows: &ByteRows, matrix: &ByteMatrix, target: Target) = multiply_body with AvxVnni;
}
