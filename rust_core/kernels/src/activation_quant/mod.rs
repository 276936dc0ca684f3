//! Quantisation of activations to int8, with one scale per group of 32 inputs of a row and outliers kept in fp32.
//!
//! `x ≈ scale * code`, code in [-127, 127], rounded to nearest even. One scale per token would cost a
//! small model several percent of perplexity; one per group costs a tenth to a third of a percent ([`ScaleMode`]). Most of
//! the remaining error comes from single channels much larger than the rest of their group. An input that is more than
//! `OUTLIER_RATIO` (3) times the next largest is therefore an outlier: its code is 0, its value is kept in fp32, and it is
//! multiplied separately. Measured on prose with the demo model ([`ScaleMode::MaxAbs`]; mean KL against exact activations):
//! 0.0031 without outliers, 0.0010 at a ratio of 3, 0.0007 at 2, with one to four outliers per row of 576. Such channels are
//! caused by the weights of a norm: outliers in the attention output and in the gated MLP input would gain only 0.00015, so
//! that these are kept in some models only ([`QuantForm`]).
//!
//! Sums of codes are stored for weights with an offset: `Σ (s·c + m)·x = s·Σ c·x + m·Σ x`. A group with a NaN or an
//! infinity gets a NaN scale, so that the results of this row, and of no other, are NaN.
//!
//! Rows are stored in tiles of four, group by group, so that a kernel that computes many rows at once needs few
//! pointers with constant offsets. With one pointer per row, loads alone cost a third of the speed.

mod batch;
mod gated;
mod scale_mode;
#[cfg(test)]
pub(crate) mod tests;

use std::ops::Range;

pub use self::gated::{GroupColumn, quantize_gated};
pub use self::scale_mode::ScaleMode;

use self::batch::{BATCH, Batch};
use crate::amx::row_tiles::{ROWS, RowTile};
use crate::pack::layout::{GROUP, QuantLayout};
use crate::pack::pairs;
use crate::simd::{LANES, Lanes, by_level};

/// Rows of a tile, whose groups are stored together.
pub const TILE_ROWS: usize = 4;

/// One group of inputs for the rows of a tile.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TileGroup {
    pub codes: [[i8; GROUP]; TILE_ROWS],
    pub scales: [f32; TILE_ROWS],
    /// Initial values of dot products with 4-bit codes ([`pairs::initial_sum`]): a multiple of the sum of the codes.
    pub initial_sums: [i32; TILE_ROWS],
    /// Sum of the codes of the group's first 16 inputs.
    pub low_sums: [i32; TILE_ROWS],
    /// The outlier of each row, if [`OutlierPositions`] has one.
    pub outliers: [f32; TILE_ROWS],
}

impl TileGroup {
    /// Copy groups `from..from + ROWS` of a batch into the lanes from `lane` on.
    #[inline(always)]
    fn fill<const ROWS: usize>(&mut self, batch: &Batch, from: usize, lane: usize) {
        let (to, from) = (lane..lane + ROWS, from..from + ROWS);
        self.codes[to.clone()].copy_from_slice(&batch.codes[from.clone()]);
        self.scales[to.clone()].copy_from_slice(&batch.scales[from.clone()]);
        self.initial_sums[to.clone()].copy_from_slice(&batch.initial_sums[from.clone()]);
        self.low_sums[to.clone()].copy_from_slice(&batch.low_sums[from.clone()]);
        self.outliers[to].copy_from_slice(&batch.outliers[from]);
    }

    /// Copy lane `from_lane` of `from` to lane `lane`.
    #[inline(always)]
    pub fn copy_lane(&mut self, lane: usize, from: &Self, from_lane: usize) {
        self.codes[lane] = from.codes[from_lane];
        self.scales[lane] = from.scales[from_lane];
        self.initial_sums[lane] = from.initial_sums[from_lane];
        self.low_sums[lane] = from.low_sums[from_lane];
        self.outliers[lane] = from.outliers[from_lane];
    }

    /// Sum of the codes of row `lane`.
    #[inline(always)]
    pub fn sum(&self, lane: usize) -> i32 {
        pairs::code_sum(self.initial_sums[lane])
    }

    /// The same over part `part` of the group: the inputs that share a weight scale in this layout.
    #[inline(always)]
    pub fn sum_of_part(&self, layout: QuantLayout, part: usize, lane: usize) -> i32 {
        match (layout.group, part) {
            (GROUP, _) => self.sum(lane),
            (_, 0) => self.low_sums[lane],
            _ => self.sum(lane) - self.low_sums[lane],
        }
    }
}

// SAFETY: plain numbers.
unsafe impl crate::arena::Plain for TileGroup {}

/// Minimum ratio of an outlier to the next largest input of its group.
const OUTLIER_RATIO: f32 = 3.0;

/// How rows are quantised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantForm {
    pub scale_mode: ScaleMode,
    /// Whether outliers are kept in fp32.
    pub keep_outliers: bool,
}

/// Index within a group of the outlier of each of a tile's rows, or [`NO_OUTLIER`]. The outlier's code is 0.
pub type OutlierPositions = [u8; TILE_ROWS];

/// No outlier.
pub const NO_OUTLIER: u8 = u8::MAX;

// SAFETY: plain numbers.
unsafe impl crate::arena::Plain for OutlierPositions {}

/// Quantised rows. `tiles` and `outlier_positions` are `[ceil(rows / 4), inputs / 32]`, with at most one outlier per row and
/// group. `row_tiles`, `[ceil(rows / 16), inputs / 32]`, holds the codes again for level `amx`, and is null on other levels.
/// Padding rows of the last tile are unspecified.
#[derive(Debug, Clone, Copy)]
pub struct QuantRows {
    pub tiles: *const TileGroup,
    /// Null if the rows have no outliers.
    pub outlier_positions: *const OutlierPositions,
    pub row_tiles: *const RowTile,
    pub inputs: usize,
}

impl QuantRows {
    /// The groups of the tile that holds row `row`.
    ///
    /// # Safety
    /// There are more than `row` rows.
    #[inline(always)]
    pub unsafe fn tile(&self, row: usize) -> *const TileGroup {
        // SAFETY: within the array by contract.
        unsafe { self.tiles.add(row / TILE_ROWS * (self.inputs / GROUP)) }
    }

    /// The same without the first `rows` rows, a multiple of the tile height, and on level `amx` of the row tile height.
    ///
    /// # Safety
    /// There are at least `rows` rows.
    #[inline(always)]
    pub unsafe fn skip(self, rows: usize) -> Self {
        // SAFETY: within the arrays, or one past their end, by contract.
        unsafe {
            Self {
                tiles: self.tile(rows),
                outlier_positions: if self.outlier_positions.is_null() {
                    self.outlier_positions
                } else {
                    self.outlier_positions
                        .add(rows / TILE_ROWS * (self.inputs / GROUP))
                },
                row_tiles: if self.row_tiles.is_null() {
                    self.row_tiles
                } else {
                    self.row_tiles.add(rows / ROWS * (self.inputs / GROUP))
                },
                ..self
            }
        }
    }

    /// Outlier positions in the groups of tile `tile`, if the rows may have outliers.
    ///
    /// # Safety
    /// There are more than `tile` tiles.
    #[inline(always)]
    pub unsafe fn outlier_positions<'a>(&self, tile: usize) -> Option<&'a [OutlierPositions]> {
        let groups = self.inputs / GROUP;
        // SAFETY: within the array by contract.
        (!self.outlier_positions.is_null()).then(|| unsafe {
            std::slice::from_raw_parts(self.outlier_positions.add(tile * groups), groups)
        })
    }
}

/// RMS norm fused into quantisation: every input is multiplied with its row's scale and its weight.
#[derive(Debug, Clone, Copy)]
pub struct RowsNorm<'a, const ROWS: usize> {
    pub scales: [f32; ROWS],
    pub weight: &'a [f32],
}

/// A row or a norm weight as groups.
#[inline(always)]
fn groups_of(row: &[f32]) -> &[[f32; GROUP]] {
    row.as_chunks().0
}

/// Load groups `groups` of all rows into `values`, ordered by group then row, and normalise them.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn load_groups<L: Lanes, const ROWS: usize>(
    rows: [&[f32]; ROWS],
    norm: Option<RowsNorm<'_, ROWS>>,
    groups: Range<usize>,
    values: &mut [[f32; GROUP]; BATCH],
) {
    let first = groups.start;
    for group in groups {
        for half in [0, LANES] {
            for row in 0..ROWS {
                // SAFETY: 16 of 32 elements at 0 and 16; instructions by the caller's promise.
                unsafe {
                    let mut x = L::load(groups_of(rows[row])[group].as_ptr().add(half));
                    if let Some(norm) = norm {
                        let weight = groups_of(norm.weight)[group].as_ptr().add(half);
                        x = x.mul(L::splat(norm.scales[row])).mul(L::load(weight));
                    }
                    let to = &mut values[(group - first) * ROWS + row];
                    x.store(to.as_mut_ptr().add(half));
                }
            }
        }
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn quantize_rows<L: Lanes, const ROWS: usize>(
    rows: [&[f32]; ROWS],
    norm: Option<RowsNorm<'_, ROWS>>,
    scale_mode: ScaleMode,
    lane: usize,
    tile: &mut [TileGroup],
    mut outlier_positions: Option<&mut [OutlierPositions]>,
) {
    let groups = tile.len();
    assert!(lane + ROWS <= TILE_ROWS);
    assert!(
        outlier_positions
            .as_ref()
            .is_none_or(|outlier_positions| outlier_positions.len() == groups)
    );
    assert!(rows.iter().all(|row| row.len() == groups * GROUP));
    assert!(norm.is_none_or(|norm| norm.weight.len() == groups * GROUP));
    let each = BATCH / ROWS;
    // Software pipelining: the next batch is loaded while the current one waits for its scales.
    let (mut batch, mut next) = (&mut Batch::new(), &mut Batch::new());
    // SAFETY: instructions by the caller's promise.
    unsafe { load_groups::<L, ROWS>(rows, norm, 0..each.min(groups), &mut batch.values) };
    for first in (0..groups).step_by(each) {
        let part = first..groups.min(first + each);
        let ahead = part.end..groups.min(part.end + each);
        // SAFETY: instructions by the caller's promise.
        unsafe {
            match outlier_positions {
                Some(_) => batch.compute_scales_and_outliers::<L>(scale_mode, part.len() * ROWS),
                None => batch.compute_scales::<L>(scale_mode, part.len() * ROWS),
            }
            load_groups::<L, ROWS>(rows, norm, ahead, &mut next.values);
            for four in (0..part.len() * ROWS).step_by(4) {
                batch.round::<L>(four);
            }
        }
        if let Some(outlier_positions) = &mut outlier_positions {
            batch.extract_outliers();
            for (at, group) in part.clone().enumerate() {
                outlier_positions[group][lane..lane + ROWS]
                    .copy_from_slice(&batch.outlier_positions[at * ROWS..(at + 1) * ROWS]);
            }
        }
        for (at, group) in part.enumerate() {
            tile[group].fill::<ROWS>(batch, at * ROWS, lane);
        }
        std::mem::swap(&mut batch, &mut next);
    }
}

/// # Safety
/// As [`quantize_row`], with the level's instructions enabled.
#[inline(always)]
unsafe fn quantize_row_body<L: Lanes>(
    row: &[f32],
    norm: Option<RowsNorm<'_, 1>>,
    scale_mode: ScaleMode,
    lane: usize,
    tile: &mut [TileGroup],
    outlier_positions: Option<&mut [OutlierPositions]>,
) {
    // SAFETY: the caller's promise.
    unsafe { quantize_rows::<L, 1>([row], norm, scale_mode, lane, tile, outlier_positions) }
}

by_level! {
    /// Quantise one row into lane `lane` of `tile`, after applying `norm` if given. `tile` and `outlier_positions` have one
    /// entry per 32 inputs. Without `outlier_positions`, no outliers are kept in fp32.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn quantize_row(row: &[f32], norm: Option<RowsNorm<'_, 1>>, scale_mode: ScaleMode, lane: usize, tile: &mut [TileGroup], outlier_positions: Option<&mut [OutlierPositions]>) = quantize_row_body;
}

/// # Safety
/// As [`quantize_tile`], with the level's instructions enabled.
#[inline(always)]
unsafe fn quantize_tile_body<L: Lanes>(
    rows: [&[f32]; TILE_ROWS],
    norm: Option<RowsNorm<'_, TILE_ROWS>>,
    scale_mode: ScaleMode,
    tile: &mut [TileGroup],
    outlier_positions: Option<&mut [OutlierPositions]>,
) {
    // SAFETY: the caller's promise.
    unsafe { quantize_rows::<L, TILE_ROWS>(rows, norm, scale_mode, 0, tile, outlier_positions) }
}

by_level! {
    /// Quantise a tile's four rows: equals [`quantize_row`] of each, but faster.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn quantize_tile(rows: [&[f32]; TILE_ROWS], norm: Option<RowsNorm<'_, TILE_ROWS>>, scale_mode: ScaleMode, tile: &mut [TileGroup], outlier_positions: Option<&mut [OutlierPositions]>) = quantize_tile_body;
}
