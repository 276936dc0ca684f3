//! Activations as int8, one scale for each group of 32 inputs of a row, and outliers apart.
//!
//! `x ≈ scale * code`, code in [-127, 127], rounded to nearest even. One scale a token would cost a
//! small model several percent of perplexity; one a group costs about a tenth of a percent. Most of
//! what is left comes from single channels that dwarf their group: an input of more than
//! [`OUTLIER_RATIO`] times the next largest is therefore taken out, kept in full precision, and
//! multiplied on its own. Measured on the demo model's prose (mean KL against exact activations): 0.0031
//! without, 0.0010 at a ratio of 3, 0.0007 at 2, for one to four outliers a row of 576.
//!
//! The sums serve weights with an offset: `Σ (s·c + m)·x = s·Σ c·x + m·Σ x`. A group with a NaN or an
//! infinity gets a NaN scale, so the row's results are NaN and nobody else's.
//!
//! Rows stand in tiles of four, group by group, so that a kernel that takes many rows at once walks few
//! pointers with constant offsets: with one pointer a row the loads alone cost a third of the speed.

use crate::amx::row_tiles::RowTile;
use crate::pack::layout::GROUP;
use crate::simd::{LANES, Lanes, by_level};

/// Rows whose groups stand together.
pub const TILE_ROWS: usize = 4;

/// One group of a tile's rows.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TileGroup {
    pub codes: [[i8; GROUP]; TILE_ROWS],
    pub scales: [f32; TILE_ROWS],
    /// `scale * sum of the codes`.
    pub scaled_sums: [f32; TILE_ROWS],
    /// The same for the group's first 16 inputs.
    pub low_scaled_sums: [f32; TILE_ROWS],
}

// SAFETY: plain numbers.
unsafe impl crate::arena::Plain for TileGroup {}

/// How far above its group's other inputs an outlier stands.
pub const OUTLIER_RATIO: f32 = 3.0;

/// An input that is not among the codes (its code is 0).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Outlier {
    pub input: u32,
    pub value: f32,
}

// SAFETY: plain numbers.
unsafe impl crate::arena::Plain for Outlier {}

/// Quantised rows: `[ceil(rows / 4), inputs / 32]` tile groups, `[rows, inputs / 32]` room for outliers
/// (at most one a group), and `[rows]` counts of them; on level `amx` the codes once more, `[ceil(rows / 16), inputs / 32]`
/// row tiles, elsewhere null. Rows that fill a last tile up hold anything.
#[derive(Debug, Clone, Copy)]
pub struct QuantRows {
    pub tiles: *const TileGroup,
    pub outliers: *const Outlier,
    pub outlier_counts: *const u32,
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
}

/// Store a group's codes and return the sums of its halves.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn store_group<L: Lanes>(
    low: L,
    high: L,
    inverse: f32,
    codes: &mut [i8; GROUP],
) -> (i32, i32) {
    // SAFETY: instructions by the caller's promise; 16 of 32 bytes at 0 and 16.
    unsafe {
        let inverse = L::splat(inverse);
        let low_sum = low.mul(inverse).store_codes(codes.as_mut_ptr());
        let high_sum = high.mul(inverse).store_codes(codes.as_mut_ptr().add(LANES));
        (low_sum, high_sum)
    }
}

#[inline(always)]
unsafe fn quantize_row_body<L: Lanes>(
    row: &[f32],
    lane: usize,
    tile: &mut [TileGroup],
    outliers: &mut [Outlier],
) -> usize {
    assert_eq!(tile.len() * GROUP, row.len());
    assert!(outliers.len() == tile.len() && lane < TILE_ROWS);
    let mut count = 0;
    let groups = row.as_chunks::<GROUP>().0.iter().zip(tile);
    for (group, (row, tile)) in groups.enumerate() {
        let codes = &mut tile.codes[lane];
        // SAFETY: instructions by the caller's promise; 16 of 32 elements at 0 and 16.
        let (low, high) = unsafe { (L::load(row.as_ptr()), L::load(row.as_ptr().add(LANES))) };
        // SAFETY: instructions by the caller's promise.
        let (largest, next) = unsafe { low.two_largest_magnitudes(high) };
        if !largest.is_finite() {
            codes.fill(0);
            tile.scales[lane] = f32::NAN;
            tile.scaled_sums[lane] = f32::NAN;
            tile.low_scaled_sums[lane] = f32::NAN;
            continue;
        }
        let apart = largest > OUTLIER_RATIO * next;
        let largest_code = if apart { next } else { largest };
        // Below this the inverse overflows; such a group is zero for every purpose.
        let inverse = if largest_code > 1e-30 {
            127.0 / largest_code
        } else {
            0.0
        };
        let outlier = apart.then(|| {
            let at = row
                .iter()
                .position(|x| x.abs() == largest)
                .expect("the largest is there");
            outliers[count] = Outlier {
                input: (group * GROUP + at) as u32,
                value: row[at],
            };
            count += 1;
            at
        });
        let (low_sum, high_sum) = if let Some(at) = outlier {
            let mut rest = *row;
            rest[at] = 0.0;
            // SAFETY: as for `row`, of which it is a copy.
            unsafe {
                let (low, high) = (L::load(rest.as_ptr()), L::load(rest.as_ptr().add(LANES)));
                store_group(low, high, inverse, codes)
            }
        } else {
            // SAFETY: instructions by the caller's promise.
            unsafe { store_group(low, high, inverse, codes) }
        };
        let scale = largest_code / 127.0;
        tile.scales[lane] = scale;
        tile.scaled_sums[lane] = scale * (low_sum + high_sum) as f32;
        tile.low_scaled_sums[lane] = scale * low_sum as f32;
    }
    count
}

by_level! {
    /// Quantise one row into lane `lane` of `tile`, which has, as `outliers`, one entry for each 32 inputs.
    /// Returns how many outliers there are.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn quantize_row(row: &[f32], lane: usize, tile: &mut [TileGroup], outliers: &mut [Outlier]) -> usize = quantize_row_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Level;
    use crate::pack::tests::Random;

    /// A row in lane 2 of a tile, and its outliers.
    fn quantized(level: Level, row: &[f32]) -> (Vec<TileGroup>, Vec<Outlier>) {
        let groups = row.len() / GROUP;
        let mut tile = vec![TileGroup::default(); groups];
        let mut outliers = vec![Outlier::default(); groups];
        // SAFETY: callers pass available levels.
        let count = unsafe { quantize_row(level, row, 2, &mut tile, &mut outliers) };
        outliers.truncate(count);
        (tile, outliers)
    }

    fn levels() -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|level| level.available())
    }

    #[test]
    fn codes_are_within_half_a_step_and_levels_agree_bit_for_bit() {
        let mut random = Random(7);
        let mut row: Vec<f32> = (0..32 * 9)
            .map(|i| random.unit() * 10f32.powi(i / 32 - 4))
            .collect();
        (row[40], row[287]) = (70.0, -1e9);
        let (tile, outliers) = quantized(Level::Portable, &row);
        assert_eq!(
            outliers.iter().map(|o| o.input).collect::<Vec<_>>(),
            [40, 287]
        );
        for (i, x) in row.iter().enumerate() {
            if let Some(outlier) = outliers.iter().find(|o| o.input == i as u32) {
                assert_eq!(
                    (outlier.value, tile[i / GROUP].codes[2][i % GROUP]),
                    (*x, 0)
                );
                continue;
            }
            let scale = tile[i / GROUP].scales[2];
            let code = f32::from(tile[i / GROUP].codes[2][i % GROUP]);
            assert!((x - scale * code).abs() <= scale * 0.50001);
        }
        for group in &tile {
            let sum = |codes: &[i8]| codes.iter().map(|&code| i32::from(code)).sum::<i32>() as f32;
            assert_eq!(group.scaled_sums[2], group.scales[2] * sum(&group.codes[2]));
            assert_eq!(
                group.low_scaled_sums[2],
                group.scales[2] * sum(&group.codes[2][..16])
            );
            assert_eq!(
                (group.codes[1], group.scales[3]),
                ([0; GROUP], 0.0),
                "others' lanes"
            );
        }
        for level in levels() {
            let expected = (tile.clone(), outliers.clone());
            assert_eq!(quantized(level, &row), expected, "{level:?}");
        }
    }

    #[test]
    fn equal_giants_share_a_scale() {
        let mut row = [0.01f32; 32];
        (row[3], row[30]) = (5.0, -5.0);
        let (tile, outliers) = quantized(Level::Portable, &row);
        let codes = tile[0].codes[2];
        assert_eq!((codes[3], codes[30], outliers.len()), (127, -127, 0));
    }

    #[test]
    fn zero_stays_zero_and_bad_numbers_poison_their_group_alone() {
        for level in levels() {
            let mut row = vec![0.0; 96];
            (row[40], row[70]) = (f32::NAN, f32::NEG_INFINITY);
            let (tile, outliers) = quantized(level, &row);
            assert!(
                tile.iter()
                    .all(|group| group.codes == TileGroup::default().codes)
            );
            assert!(outliers.is_empty());
            assert_eq!(tile[0], TileGroup::default());
            assert!(tile[1].scales[2].is_nan() && tile[2].scaled_sums[2].is_nan());
        }
    }
}
