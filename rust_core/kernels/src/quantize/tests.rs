//! Error bounds of quantised weights, compared with plain implementations and with the best codes for each scale.

use proptest::prelude::*;

use super::*;
use crate::pack::tests::Random;

/// Weights of a matrix as f32, f16 or bf16, and the values that these have.
fn matrix(dtype: DType, values: &[f32]) -> (Vec<u8>, Vec<f32>) {
    let bytes: Vec<u8> = match dtype {
        DType::F32 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        DType::F16 => values
            .iter()
            .flat_map(|&v| half::f16::from_f32(v).to_le_bytes())
            .collect(),
        _ => values
            .iter()
            .flat_map(|&v| half::bf16::from_f32(v).to_le_bytes())
            .collect(),
    };
    let mut stored = vec![0.0; values.len()];
    dequantize_row(dtype, &bytes, &mut stored);
    (bytes, stored)
}

/// Roughly normal weights with a few outliers.
fn random_values(count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    let size = 0.001 + 0.1 * random.unit().abs();
    (0..count)
        .map(|_| {
            let normal: f32 = (0..4).map(|_| random.unit()).sum();
            let outlier = if random.bits().is_multiple_of(97) {
                6.0
            } else {
                1.0
            };
            size * normal * outlier
        })
        .collect()
}

/// Quantised and dequantised `[rows, cols]`.
fn round_trip(level: Level, dtype: DType, values: &[f32], cols: usize, target: DType) -> Vec<f32> {
    let (bytes, _) = matrix(dtype, values);
    let shape = [values.len() / cols, cols];
    let tensor = TensorView {
        name: "w",
        shape: &shape,
        dtype,
        bytes: &bytes,
    };
    let mut quantizer = Quantizer::default();
    let mut out = vec![0.0; values.len()];
    for start in (0..shape[0]).step_by(LANES) {
        let outputs = start..shape[0].min(start + LANES);
        let quantised = quantizer.quantize(level, &tensor, target, outputs.clone());
        assert_eq!(
            (quantised.shape[0], quantised.dtype),
            (outputs.len(), target)
        );
        dequantize_row(
            target,
            quantised.bytes,
            &mut out[outputs.start * cols..outputs.end * cols],
        );
    }
    out
}

fn squared_error(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

/// The squared error of a group whose range is divided into 15 (affine) or whose largest magnitude is code `top`.
fn plain_error(group: &[f32], top: f32, affine: bool) -> f64 {
    let (low, high) = group
        .iter()
        .fold((0f32, 0f32), |(low, high), &x| (low.min(x), high.max(x)));
    let (low, scale) = if affine {
        (low, (high - low) / top)
    } else {
        (0.0, high.max(-low) / top)
    };
    let rounded = |x: f32| {
        if scale > 0.0 {
            ((x - low) / scale).round() * scale + low
        } else {
            low
        }
    };
    group
        .iter()
        .map(|&x| f64::from(x - rounded(x)).powi(2))
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Half a step, with the rounding of scales to their storage on top.
    #[test]
    fn q8_0_errors_are_at_most_half_a_step(seed: u64, rows in 1usize..20, groups in 1usize..4) {
        let cols = 32 * groups;
        let values = random_values(rows * cols, seed);
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let (_, stored) = matrix(dtype, &values);
            let got = round_trip(Level::best(), dtype, &values, cols, DType::Q8_0);
            for (group, got) in stored.chunks(32).zip(got.chunks(32)) {
                let largest = group.iter().fold(0f32, |most, x| most.max(x.abs()));
                for (x, q) in group.iter().zip(got) {
                    prop_assert!((x - q).abs() <= largest / 127.0 * 0.57 + 1e-7, "{x} {q}");
                }
            }
        }
    }

    /// The search never does worse than dividing the range evenly, beyond what storing the scales costs.
    #[test]
    fn searched_scales_are_better_than_even_ones(seed: u64, rows in 1usize..20, blocks in 1usize..3) {
        let cols = 256 * blocks;
        let values = random_values(rows * cols, seed);
        for (target, group, top, affine, slack) in [
            (DType::Q4_1, 32, 15.0, true, 1.0),
            (DType::Q4K, 32, 15.0, true, 1.06),
            (DType::Q6K, 16, 31.0, false, 1.06),
        ] {
            let got = round_trip(Level::best(), DType::F32, &values, cols, target);
            let plain: f64 = values.chunks(group).map(|g| plain_error(g, top, affine)).sum();
            let error = squared_error(&values, &got);
            prop_assert!(error <= slack * plain + 1e-9, "{target:?}: {error} against {plain}");
        }
    }

    #[test]
    fn every_level_computes_the_same_blocks(seed: u64, rows in 1usize..20) {
        let values = random_values(rows * 512, seed);
        for target in QUANTIZED_TO {
            let expected = round_trip(Level::Portable, DType::F32, &values, 512, target);
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                prop_assert_eq!(&round_trip(level, DType::F32, &values, 512, target), &expected);
            }
        }
    }

    /// Weights that a format can represent stay what they are.
    #[test]
    fn weights_on_a_grid_are_exact(seed: u64) {
        let mut random = Random(seed);
        // Codes 0 and 15 (or -32) occur in each group, so the scale is the grid's.
        let mut grid = |low: i32, high: i32, group: usize| -> Vec<f32> {
            (0..512)
                .map(|at| match at % group {
                    0 => low,
                    1 => high,
                    _ => low + (random.bits() % (high - low + 1) as u64) as i32,
                } as f32 / 64.0)
                .collect()
        };
        let four = grid(-7, 8, 32);
        prop_assert_eq!(&round_trip(Level::best(), DType::F32, &four, 512, DType::Q4_1), &four);
        let eight = grid(-127, 127, 32);
        prop_assert_eq!(&round_trip(Level::best(), DType::F32, &eight, 512, DType::Q8_0), &eight);
        let six = grid(-32, 31, 16);
        let got = round_trip(Level::best(), DType::F32, &six, 512, DType::Q6K);
        prop_assert!(squared_error(&six, &got) <= 1e-6 * squared_error(&six, &[0.0; 512]));
    }
}

#[test]
fn constant_groups_are_kept() {
    for value in [0.0f32, 0.75, -0.75] {
        let values = [value; 256];
        for target in QUANTIZED_TO {
            let got = round_trip(Level::best(), DType::F32, &values, 256, target);
            assert!(
                got.iter().all(|q| (q - value).abs() <= 0.004),
                "{target:?} {value}: {}",
                got[0]
            );
        }
    }
}

#[test]
fn weights_that_are_not_finite_or_too_large_become_nan_in_their_block_only() {
    for bad in [f32::NAN, f32::INFINITY, -1e30] {
        let mut values = vec![0.5f32; 2 * 512];
        values[512 + 256] = bad;
        for target in QUANTIZED_TO {
            let got = round_trip(Level::best(), DType::F32, &values, 512, target);
            let block = 512 + 256..512 + 256 + target.block_len();
            for (at, weight) in got.iter().enumerate() {
                assert_eq!(
                    weight.is_nan(),
                    block.contains(&at),
                    "{target:?} {bad} at {at}"
                );
            }
        }
    }
}

#[test]
fn modes_choose_by_role_and_length_and_leave_quantised_weights() {
    let q4 = |role, inputs| WeightMode::Q4.target(DType::BF16, role, inputs);
    assert_eq!(q4(Role::Other, 2048), DType::Q4K);
    assert_eq!(q4(Role::Other, 576), DType::Q4_1);
    assert_eq!(q4(Role::Vocabulary, 2048), DType::Q6K);
    assert_eq!(q4(Role::Vocabulary, 576), DType::Q8_0);
    assert_eq!(q4(Role::Other, 100), DType::BF16);
    for mode in [WeightMode::Q8, WeightMode::Q4] {
        assert_eq!(mode.target(DType::Q5K, Role::Other, 2048), DType::Q5K);
    }
    assert_eq!(
        WeightMode::Q8.target(DType::F16, Role::Vocabulary, 576),
        DType::Q8_0
    );
    assert_eq!(
        WeightMode::Stored.target(DType::F16, Role::Other, 576),
        DType::F16
    );
    let error = WeightMode::parse("q5").unwrap_err().to_string();
    assert!(error.contains("stored, q8 or q4"), "{error}");
}
