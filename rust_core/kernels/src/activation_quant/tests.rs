use proptest::prelude::*;

use super::*;
use crate::activation::activate_panel;
use crate::amx::row_tiles::{self, RowTile, copy_row};
use crate::dispatch::Level;
use crate::norm::{rms_norm, rms_scale, rms_scales_of_tile};
use crate::pack::tests::Random;
use crate::spec::Activation;

/// An input kept in fp32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outlier {
    pub input: u32,
    pub value: f32,
}

/// The outliers of lane `lane` of a tile, in input order.
pub(crate) fn outliers_of(
    lane: usize,
    tile: &[TileGroup],
    outlier_positions: &[OutlierPositions],
) -> Vec<Outlier> {
    let groups = tile.iter().zip(outlier_positions).enumerate();
    groups
        .filter(|(_, (_, outlier_positions))| outlier_positions[lane] != NO_OUTLIER)
        .map(|(at, (group, outlier_positions))| Outlier {
            input: (at * GROUP) as u32 + u32::from(outlier_positions[lane]),
            value: group.outliers[lane],
        })
        .collect()
}

/// A row in lane 2 of a tile, and its outliers.
fn quantized(level: Level, row: &[f32], scale_mode: ScaleMode) -> (Vec<TileGroup>, Vec<Outlier>) {
    normalized_and_quantized(level, row, None, scale_mode, true)
}

fn normalized_and_quantized(
    level: Level,
    row: &[f32],
    norm: Option<RowsNorm<'_, 1>>,
    scale_mode: ScaleMode,
    keep_outliers: bool,
) -> (Vec<TileGroup>, Vec<Outlier>) {
    let groups = row.len() / GROUP;
    let mut tile = vec![TileGroup::default(); groups];
    let mut outlier_positions = vec![[1, 1, NO_OUTLIER, 1]; groups];
    // SAFETY: callers pass available levels.
    unsafe {
        quantize_row(
            level,
            row,
            norm,
            scale_mode,
            2,
            &mut tile,
            keep_outliers.then_some(&mut outlier_positions[..]),
        )
    };
    assert!(
        outlier_positions
            .iter()
            .all(|p| (p[0], p[1], p[3]) == (1, 1, 1)),
        "other lanes were written"
    );
    let outliers = outliers_of(2, &tile, &outlier_positions);
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
    let (least, _) = quantized(Level::Portable, &row, ScaleMode::MaxAbs);
    for scale_mode in [ScaleMode::MaxAbs, ScaleMode::PowerOfTwo] {
        within_half_a_step(&row, scale_mode, &least);
    }
}

fn within_half_a_step(row: &[f32], scale_mode: ScaleMode, least: &[TileGroup]) {
    let (tile, outliers) = quantized(Level::Portable, row, scale_mode);
    for (group, least) in tile.iter().zip(least) {
        let (scale, least) = (group.scales[2], least.scales[2]);
        match scale_mode {
            ScaleMode::MaxAbs => assert_eq!(scale, least),
            ScaleMode::PowerOfTwo => {
                assert_eq!(scale.to_bits() & 0x007f_ffff, 0, "a power of two");
                assert!((1.0 - 1e-6..2.0).contains(&(scale / least)));
            }
        }
    }
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
        let sum = |codes: &[i8]| codes.iter().map(|&code| i32::from(code)).sum::<i32>();
        assert_eq!(group.sum(2), sum(&group.codes[2]));
        assert_eq!(group.low_sums[2], sum(&group.codes[2][..16]));
        assert_eq!(
            (group.codes[1], group.scales[3]),
            ([0; GROUP], 0.0),
            "other lanes were written"
        );
    }
    for level in levels() {
        let expected = (tile.clone(), outliers.clone());
        assert_eq!(quantized(level, row, scale_mode), expected, "{level:?}");
    }
}

/// The bits of a row's groups in lane 2, so that NaN equals NaN.
fn bits(tile: &[TileGroup]) -> Vec<([i8; GROUP], u32, [i32; 2])> {
    bits_of(2, tile.iter())
}

fn bits_of<'a>(
    lane: usize,
    groups: impl Iterator<Item = &'a TileGroup>,
) -> Vec<([i8; GROUP], u32, [i32; 2])> {
    let bits_of = |g: &TileGroup| {
        let sums = [g.initial_sums[lane], g.low_sums[lane]];
        (g.codes[lane], g.scales[lane].to_bits(), sums)
    };
    groups.map(bits_of).collect()
}

/// Values of all magnitudes, including isolated large ones, equal ones and zeros.
fn value() -> impl Strategy<Value = f32> {
    prop_oneof![
        20 => -1f32..1.0,
        2 => (-40i32..38, -1f32..1.0).prop_map(|(power, x)| x * 10f32.powi(power)),
        2 => prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 3.000_001, 1e-30, 1e-31]),
        1 => prop::sample::select(vec![50.0, -700.0]),
    ]
}

fn scale_modes() -> impl Strategy<Value = ScaleMode> {
    prop::sample::select(vec![ScaleMode::MaxAbs, ScaleMode::PowerOfTwo])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn levels_agree_with_and_without_a_fused_norm(
        row in (1usize..40).prop_flat_map(|groups| prop::collection::vec(value(), groups * GROUP)),
        bad in prop::option::of((any::<prop::sample::Index>(), prop::sample::select(vec![
            f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN
        ]))),
        scale_mode in scale_modes(),
    ) {
        let mut row = row;
        if let Some((at, bad)) = bad {
            let at = at.index(row.len());
            row[at] = bad;
        }
        let (portable, portable_outliers) = quantized(Level::Portable, &row, scale_mode);
        let weight: Vec<f32> = (0..row.len()).map(|i| (i as f32).cos()).collect();
        for level in levels() {
            let (tile, outliers) = quantized(level, &row, scale_mode);
            prop_assert_eq!(bits(&tile), bits(&portable), "{:?}", level);
            prop_assert_eq!(&outliers, &portable_outliers, "{:?}", level);
            let mut normed = vec![0.0; row.len()];
            // SAFETY: the level is available.
            let scale = unsafe {
                rms_norm(level, &row, &weight, 1e-5, &mut normed);
                rms_scale(level, &row, 1e-5)
            };
            let norm = Some(RowsNorm { scales: [scale], weight: &weight });
            let (tile, outliers) = normalized_and_quantized(level, &row, norm, scale_mode, true);
            let (expected, expected_outliers) = quantized(Level::Portable, &normed, scale_mode);
            prop_assert_eq!(bits(&tile), bits(&expected), "{:?}, with a norm", level);
            prop_assert_eq!(outliers, expected_outliers, "{:?}, with a norm", level);
        }
    }

    #[test]
    fn quantizing_a_tile_equals_quantizing_its_rows(
        rows in (1usize..23).prop_flat_map(|groups| prop::collection::vec(value(), 4 * groups * GROUP)),
        bad in prop::option::of((any::<prop::sample::Index>(), prop::sample::select(vec![
            f32::NAN, f32::INFINITY, f32::NEG_INFINITY
        ]))),
        normed: bool, keep_outliers: bool, scale_mode in scale_modes(),
    ) {
        let mut rows = rows;
        if let Some((at, bad)) = bad {
            let at = at.index(rows.len());
            rows[at] = bad;
        }
        let inputs = rows.len() / TILE_ROWS;
        let weight: Vec<f32> = (0..inputs).map(|i| (i as f32).cos()).collect();
        let rows: [&[f32]; TILE_ROWS] = std::array::from_fn(|lane| &rows[lane * inputs..][..inputs]);
        for level in levels() {
            // SAFETY: the level is available.
            let scales = unsafe { rms_scales_of_tile(level, rows, 1e-5) };
            let norm = normed.then_some(RowsNorm { scales, weight: &weight });
            let mut tile = vec![TileGroup::default(); inputs / GROUP];
            let mut outlier_positions = vec![[NO_OUTLIER; TILE_ROWS]; inputs / GROUP];
            // SAFETY: the level is available.
            unsafe { quantize_tile(level, rows, norm, scale_mode, &mut tile, keep_outliers.then_some(&mut outlier_positions[..])) };
            for (lane, row) in rows.into_iter().enumerate() {
                // SAFETY: the level is available.
                let scale = unsafe { rms_scale(level, row, 1e-5) };
                prop_assert_eq!(scale.to_bits(), scales[lane].to_bits(), "{:?}", level);
                let norm = normed.then_some(RowsNorm { scales: [scale], weight: &weight });
                let (alone, outliers) = normalized_and_quantized(level, row, norm, scale_mode, keep_outliers);
                prop_assert_eq!(bits_of(lane, tile.iter()), bits(&alone), "{:?} {}", level, lane);
                prop_assert_eq!(outliers_of(lane, &tile, &outlier_positions), outliers, "{:?} {}", level, lane);
            }
        }
    }

    #[test]
    fn fused_activation_equals_activation_then_quantizing(
        rows in 1usize..38, groups in 1usize..4, seed: u64,
        kind in prop::sample::select(Activation::ALL.to_vec()), gated: bool,
        scale_mode in scale_modes(), keep_outliers: bool,
        large_values in prop::collection::vec((any::<prop::sample::Index>(), value()), 0..20),
        bad in prop::option::of((any::<prop::sample::Index>(), prop::sample::select(vec![
            f32::NAN, f32::INFINITY
        ]))),
    ) {
        let mut random = Random(seed | 1);
        // [groups, rows, 32]
        let mut gate: Vec<f32> = (0..groups * rows * GROUP).map(|_| 4.0 * random.unit()).collect();
        let up: Vec<f32> = gate.iter().map(|_| random.unit()).collect();
        for (at, value) in large_values {
            let at = at.index(gate.len());
            gate[at] = value;
        }
        let poisoned = bad.map(|(at, bad)| {
            let at = at.index(gate.len());
            gate[at] = bad;
            at / GROUP % rows
        });
        let tiles = rows.div_ceil(TILE_ROWS);
        let form = QuantForm { scale_mode, keep_outliers };
        let gate_at = |at: usize| gate.as_ptr().wrapping_add(at);
        let up_at = |at: usize| if gated { up.as_ptr().wrapping_add(at) } else { std::ptr::null() };
        for level in levels() {
            let mut outlier_positions = vec![[1; TILE_ROWS]; tiles * groups];
            let mut joined_tiles = vec![TileGroup::default(); tiles * groups];
            let empty = RowTile { codes: [[1; GROUP]; row_tiles::ROWS] };
            let mut row_tiles = vec![empty; rows.div_ceil(row_tiles::ROWS) * groups];
            let mut expected_row_tiles = row_tiles.clone();
            let mut written = vec![0.0; rows * groups * GROUP];
            // The order of groups is irrelevant.
            for group in (0..groups).rev() {
                let to = GroupColumn {
                    tiles: &raw mut joined_tiles[group],
                    outlier_positions: &raw mut outlier_positions[group],
                    row_tiles: &raw mut row_tiles[group],
                    groups,
                };
                let first = group * rows * GROUP;
                // SAFETY: the level is available; the destination holds every row.
                unsafe { quantize_gated(level, kind, gate_at(first), up_at(first), rows, form, to) };
                for row in 0..rows {
                    for half in [0, 16] {
                        let out = &raw mut written[(row * groups + group) * GROUP + half];
                        let from = first + row * GROUP + half;
                        // SAFETY: the level is available; sixteen floats each.
                        unsafe { activate_panel(level, kind, gate_at(from), up_at(from), out, 16, 1) };
                    }
                }
            }
            for row in 0..rows {
                let (tile, lane) = (row / TILE_ROWS, row % TILE_ROWS);
                let groups_of = |tile: usize| &joined_tiles[tile * groups..][..groups];
                let row_written = &written[row * groups * GROUP..][..groups * GROUP];
                let (alone, outliers) = normalized_and_quantized(level, row_written, None, scale_mode, keep_outliers);
                let got = bits_of(lane, groups_of(tile).iter());
                prop_assert_eq!(&got, &bits(&alone), "{:?} {:?} row {}", level, kind, row);
                if keep_outliers {
                    let positions = &outlier_positions[tile * groups..][..groups];
                    prop_assert_eq!(outliers_of(lane, groups_of(tile), positions), outliers, "{:?}", level);
                }
                let is_bad = groups_of(tile).iter().any(|group| group.scales[lane].is_nan());
                // The square of a large number may be infinite.
                prop_assert_eq!(is_bad, row_written.iter().any(|x| !x.is_finite()));
                prop_assert!(is_bad || poisoned != Some(row));
                // SAFETY: the destination holds every row.
                unsafe { copy_row(row, groups_of(tile), expected_row_tiles.as_mut_ptr(), groups) };
                for group in 0..groups {
                    let at = row / row_tiles::ROWS * groups + group;
                    let codes = |tiles: &[RowTile]| tiles[at].codes[row % row_tiles::ROWS];
                    prop_assert_eq!(codes(&row_tiles), codes(&expected_row_tiles));
                }
            }
        }
    }
}

#[test]
fn equal_maxima_are_not_outliers() {
    let mut row = [0.01f32; 32];
    (row[3], row[30]) = (5.0, -5.0);
    let (tile, outliers) = quantized(Level::Portable, &row, ScaleMode::MaxAbs);
    let codes = tile[0].codes[2];
    assert_eq!((codes[3], codes[30], outliers.len()), (127, -127, 0));
}

#[test]
fn zeros_stay_zero_and_non_finite_values_affect_only_their_group() {
    for level in levels() {
        let mut row = vec![0.0; 96];
        (row[40], row[70]) = (f32::NAN, f32::NEG_INFINITY);
        let (tile, outliers) = quantized(level, &row, ScaleMode::PowerOfTwo);
        assert!(
            tile.iter()
                .all(|group| group.codes == TileGroup::default().codes)
        );
        assert!(outliers.is_empty());
        assert_eq!(tile[0], TileGroup::default());
        assert!(tile[1].scales[2].is_nan() && tile[2].scales[2].is_nan());
    }
}
