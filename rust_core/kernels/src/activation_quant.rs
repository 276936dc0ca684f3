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

/// What a row is normalised with while it is quantised: every input times `scale` times its weight.
#[derive(Debug, Clone, Copy)]
pub struct RowNorm<'a> {
    pub scale: f32,
    pub weight: &'a [f32],
}

/// Groups that are worked on at once: one a lane.
const BATCH: usize = LANES;

/// Copy up to sixteen groups, normalised.
///
/// # Safety
/// The level's instructions are enabled; `weight` is as long as `from`.
#[inline(always)]
unsafe fn normalized<L: Lanes>(
    from: &[[f32; GROUP]],
    norm: Option<(f32, &[[f32; GROUP]])>,
    to: &mut [[f32; GROUP]; BATCH],
) {
    for (group, (from, to)) in from.iter().zip(to).enumerate() {
        for at in [0, LANES] {
            // SAFETY: 16 of 32 elements at 0 and 16; instructions by the caller's promise.
            unsafe {
                let mut x = L::load(from.as_ptr().add(at));
                if let Some((scale, weight)) = norm {
                    let weight = L::load(weight[group].as_ptr().add(at));
                    x = x.mul(L::splat(scale)).mul(weight);
                }
                x.store(to.as_mut_ptr().add(at));
            }
        }
    }
}

/// Where in a group the value of magnitude `largest` stands, the first one of several.
#[inline(always)]
fn place_of(group: &[f32; GROUP], largest: f32) -> usize {
    let mut found = 0u32;
    for (at, x) in group.iter().enumerate() {
        found |= u32::from(x.abs() == largest) << at;
    }
    found.trailing_zeros() as usize
}

/// Scales and the factors to codes of sixteen groups whose largest magnitude among codes is given.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn scales_of<L: Lanes>(
    largest: &[f32; BATCH],
    scales: &mut [f32; BATCH],
    factors: &mut [f32; BATCH],
) {
    // SAFETY: arrays of sixteen; instructions by the caller's promise.
    unsafe {
        let (largest, most) = (L::load(largest.as_ptr()), L::splat(127.0));
        largest.div(most).store(scales.as_mut_ptr());
        // Up to here the inverse overflows; such a group is zero for every purpose.
        L::splat(1e-30)
            .select_less(largest, most.div(largest), L::splat(0.0))
            .store(factors.as_mut_ptr());
    }
}

#[inline(always)]
unsafe fn quantize_row_body<L: Lanes>(
    row: &[f32],
    norm: Option<RowNorm<'_>>,
    lane: usize,
    tile: &mut [TileGroup],
    outliers: &mut [Outlier],
) -> usize {
    assert_eq!(tile.len() * GROUP, row.len());
    assert!(outliers.len() == tile.len() && lane < TILE_ROWS);
    assert!(norm.is_none_or(|norm| norm.weight.len() == row.len()));
    let (rows, weights) = (
        row.as_chunks::<GROUP>().0,
        norm.map(|norm| norm.weight.as_chunks::<GROUP>().0),
    );
    let mut values = Aligned([[0.0; GROUP]; BATCH]);
    let values = &mut values.0;
    let (mut largest, mut next) = ([0.0; BATCH], [0.0; BATCH]);
    let (mut scales, mut factors) = ([0.0; BATCH], [0.0; BATCH]);
    let (mut low_sums, mut high_sums) = ([0; BATCH], [0; BATCH]);
    let mut count = 0;
    for (batch, tile) in tile.chunks_mut(BATCH).enumerate() {
        let groups = batch * BATCH..batch * BATCH + tile.len();
        let norm = norm
            .zip(weights)
            .map(|(norm, weights)| (norm.scale, &weights[groups.clone()]));
        // SAFETY: instructions by the caller's promise; the weights are as long as the row.
        unsafe {
            normalized::<L>(&rows[groups.clone()], norm, values);
            L::two_largest_of_groups(&values[..tile.len()], &mut largest, &mut next);
        }
        let (mut bad, mut odd) = (0u32, 0u32);
        for at in 0..BATCH {
            let ordinary = largest[at] <= OUTLIER_RATIO * next[at] && next[at] < f32::INFINITY;
            odd |= u32::from(!ordinary) << at;
        }
        odd &= (1 << tile.len()) - 1;
        while odd != 0 {
            let at = odd.trailing_zeros() as usize;
            odd &= odd - 1;
            let group = &mut values[at];
            if largest[at].is_finite() {
                let place = place_of(group, largest[at]);
                outliers[count] = Outlier {
                    input: ((groups.start + at) * GROUP + place) as u32,
                    value: group[place],
                };
                count += 1;
                group[place] = 0.0;
                largest[at] = next[at];
            } else {
                bad |= 1 << at;
                group.fill(0.0);
                largest[at] = 0.0;
            }
        }
        let codes = (&raw mut tile[0].codes[lane]).cast::<i8>();
        // SAFETY: instructions by the caller's promise; every group of the tile has 32 codes for the lane, the
        // size of a group of all its lanes apart.
        unsafe {
            scales_of::<L>(&largest, &mut scales, &mut factors);
            let (values, stride) = (&values[..tile.len()], size_of::<TileGroup>());
            L::store_groups(
                values,
                &factors,
                codes,
                stride,
                &mut low_sums,
                &mut high_sums,
            );
        }
        if bad != 0 {
            for (at, scale) in scales.iter_mut().enumerate() {
                if bad >> at & 1 == 1 {
                    *scale = f32::NAN;
                }
            }
        }
        let sums: [f32; BATCH] =
            std::array::from_fn(|at| scales[at] * (low_sums[at] + high_sums[at]) as f32);
        let low_sums: [f32; BATCH] = std::array::from_fn(|at| scales[at] * low_sums[at] as f32);
        for (at, group) in tile.iter_mut().enumerate() {
            group.scales[lane] = scales[at];
            group.scaled_sums[lane] = sums[at];
            group.low_scaled_sums[lane] = low_sums[at];
        }
    }
    count
}

/// Memory that begins a cache line.
#[repr(C, align(64))]
struct Aligned<T>(T);

by_level! {
    /// Quantise one row, normalised first where a norm is given, into lane `lane` of `tile`, which has, as
    /// `outliers`, one entry for each 32 inputs. Returns how many outliers there are.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn quantize_row(row: &[f32], norm: Option<RowNorm<'_>>, lane: usize, tile: &mut [TileGroup], outliers: &mut [Outlier]) -> usize = quantize_row_body;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dispatch::Level;
    use crate::norm::{rms_norm, rms_scale};
    use crate::pack::tests::Random;

    /// A row in lane 2 of a tile, and its outliers.
    fn quantized(level: Level, row: &[f32]) -> (Vec<TileGroup>, Vec<Outlier>) {
        normalized_and_quantized(level, row, None)
    }

    fn normalized_and_quantized(
        level: Level,
        row: &[f32],
        norm: Option<RowNorm<'_>>,
    ) -> (Vec<TileGroup>, Vec<Outlier>) {
        let groups = row.len() / GROUP;
        let mut tile = vec![TileGroup::default(); groups];
        let mut outliers = vec![Outlier::default(); groups];
        // SAFETY: callers pass available levels.
        let count = unsafe { quantize_row(level, row, norm, 2, &mut tile, &mut outliers) };
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

    /// The bits of a row's groups in lane 2, so that NaN equals NaN.
    fn bits(tile: &[TileGroup]) -> Vec<([i8; GROUP], [u32; 3])> {
        let numbers = |g: &TileGroup| [g.scales[2], g.scaled_sums[2], g.low_scaled_sums[2]];
        tile.iter()
            .map(|group| (group.codes[2], numbers(group).map(f32::to_bits)))
            .collect()
    }

    /// Values of every size, with some that are alone, equal, zero or no number.
    fn value() -> impl Strategy<Value = f32> {
        prop_oneof![
            20 => -1f32..1.0,
            2 => (-40i32..38, -1f32..1.0).prop_map(|(power, x)| x * 10f32.powi(power)),
            2 => prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 3.000_001, 1e-30, 1e-31]),
            1 => prop::sample::select(vec![50.0, -700.0]),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(192))]
        #[test]
        fn levels_agree_and_norms_may_come_first(
            row in (1usize..40).prop_flat_map(|groups| prop::collection::vec(value(), groups * GROUP)),
            bad in prop::option::of((any::<prop::sample::Index>(), prop::sample::select(vec![
                f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN
            ]))),
        ) {
            let mut row = row;
            if let Some((at, bad)) = bad {
                let at = at.index(row.len());
                row[at] = bad;
            }
            let (portable, apart) = quantized(Level::Portable, &row);
            let weight: Vec<f32> = (0..row.len()).map(|i| (i as f32).cos()).collect();
            for level in levels() {
                let (tile, outliers) = quantized(level, &row);
                prop_assert_eq!(bits(&tile), bits(&portable), "{:?}", level);
                prop_assert_eq!(&outliers, &apart, "{:?}", level);
                let mut normed = vec![0.0; row.len()];
                // SAFETY: the level is available.
                let scale = unsafe {
                    rms_norm(level, &row, &weight, 1e-5, &mut normed);
                    rms_scale(level, &row, 1e-5)
                };
                let norm = Some(RowNorm { scale, weight: &weight });
                let (tile, outliers) = normalized_and_quantized(level, &row, norm);
                let (expected, apart) = quantized(Level::Portable, &normed);
                prop_assert_eq!(bits(&tile), bits(&expected), "{:?}, with a norm", level);
                prop_assert_eq!(outliers, apart, "{:?}, with a norm", level);
            }
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
