use proptest::prelude::*;

use super::rows::RowScale;
use super::*;
use crate::dispatch::Level;
use crate::guarded::{Guarded, on_both_sides};
use crate::pack::layout::PANEL_COLUMNS;
use crate::pack::tests::Random;

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.available())
}

/// A product: everything that `multiply` takes, in floats.
struct Case {
    values: Vec<f32>,
    weights: Vec<f32>,
    inputs: usize,
    bias: Vec<f32>,
    rows: usize,
}

impl Case {
    fn random(rows: usize, inputs: usize, outputs: usize, seed: u64) -> Self {
        let mut random = Random(seed);
        let mut some = |count: usize, size: f32| -> Vec<f32> {
            (0..count).map(|_| size * random.unit()).collect()
        };
        let mut values = some(rows * inputs, 2.0);
        for at in (3..values.len()).step_by(97) {
            values[at] *= 20.0;
        }
        Self {
            values,
            weights: some(outputs * inputs, 0.1),
            inputs,
            bias: some(outputs, 1.0),
            rows,
        }
    }

    fn matrix(&self) -> ByteMatrix {
        ByteMatrix::new(&self.weights, self.bias.clone(), self.inputs).unwrap()
    }

    fn quantized(&self, level: Level) -> ByteRows {
        let mut rows = ByteRows::new(level, self.rows, self.inputs).unwrap();
        // SAFETY: the level is available.
        unsafe { rows.fill(&self.values, self.inputs, Range::Whole) };
        rows
    }

    fn multiplied(&self, level: Level, finish: Finish) -> Vec<f32> {
        let outputs = self.bias.len();
        let mut out = Guarded::filled(0.25, self.rows * outputs);
        let target = Target {
            out: out.as_mut_ptr(),
            finish,
        };
        // SAFETY: the level is available; the target has all rows and outputs.
        unsafe { multiply(level, &self.quantized(level), &self.matrix(), target) };
        out.to_vec()
    }

    /// The exact results of the weights, by row and output.
    fn exact(&self) -> Vec<f64> {
        let inputs = self.inputs;
        let rows = self.values.chunks(inputs);
        rows.flat_map(|x| {
            let outputs = self.weights.chunks(inputs).zip(&self.bias);
            outputs.map(|(w, bias)| {
                let products = x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w));
                products.sum::<f64>() + f64::from(*bias)
            })
        })
        .collect()
    }
}

#[test]
fn products_are_near_the_exact_ones_and_equal_on_every_level() {
    on_both_sides(|| {
        for (rows, inputs, panels) in [(1, 32, 1), (2, 64, 3), (13, 96, 2), (29, 384, 5)] {
            let case = Case::random(rows, inputs, panels * PANEL_COLUMNS, inputs as u64);
            let exact = case.exact();
            for level in levels() {
                let made = case.multiplied(level, Finish::Store);
                let stored = case.multiplied(Level::Portable, Finish::Store);
                for ((made, exact), portable) in made.iter().zip(&exact).zip(stored) {
                    // Codes are within half a step of 40 · 2 / 255 for rows and of 0.1 · 2 / 127 for weights.
                    let error = (f64::from(*made) - exact).abs();
                    assert!(
                        error < 0.25 + 0.02 * (inputs as f64).sqrt(),
                        "{level:?} {error}"
                    );
                    assert!(
                        (made - portable).abs() <= 1e-5 * (1.0 + portable.abs()),
                        "{level:?}"
                    );
                }
            }
        }
    });
}

#[test]
fn results_are_stored_added_or_activated() {
    let case = Case::random(5, 64, 32, 3);
    for level in levels() {
        let stored = case.multiplied(level, Finish::Store);
        let added = case.multiplied(level, Finish::Add);
        let activated = case.multiplied(level, Finish::Gelu);
        let mut expected = stored.clone();
        // SAFETY: the level is available.
        unsafe { crate::norm::gelu(level, &mut expected) };
        for at in 0..stored.len() {
            assert_eq!(added[at], stored[at] + 0.25, "{level:?}");
            assert!((activated[at] - expected[at]).abs() < 1e-4, "{level:?}");
        }
    }
}

#[test]
fn gelu_is_near_everywhere() {
    // One input of value x and weight 1: the result is x, but for the last bits.
    for level in levels() {
        for step in -400..=400 {
            let x = step as f32 / 20.0;
            let mut weights = vec![0.0; 16 * 32];
            weights[0] = 1.0;
            let mut values = vec![0.0; 32];
            values[0] = x;
            let case = Case {
                values,
                weights,
                inputs: 32,
                bias: vec![0.0; 16],
                rows: 1,
            };
            let mut exact = [x; 16];
            // SAFETY: the level is available.
            unsafe { crate::norm::gelu(level, &mut exact) };
            let made = case.multiplied(level, Finish::Gelu)[0];
            assert!(
                (made - exact[0]).abs() < 1e-4,
                "{level:?} {x} {made} {}",
                exact[0]
            );
        }
    }
}

#[test]
fn extreme_codes_do_not_overflow() {
    let inputs = 1536;
    for sign in [1.0, -1.0] {
        let mut values = vec![1.0; inputs];
        values[inputs - 1] = 0.0; // so that the codes are 255, and once 0
        let case = Case {
            values,
            weights: vec![sign; 16 * inputs],
            inputs,
            bias: vec![0.0; 16],
            rows: 1,
        };
        for level in levels() {
            for made in case.multiplied(level, Finish::Store) {
                assert!((made - sign * 1535.0).abs() < 1e-2, "{level:?} {made}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_row_does_not_depend_on_the_others(rows in 1usize..40, wide in 1usize..7, seed: u64) {
        let inputs = 32 * wide;
        let case = Case::random(rows, inputs, 48, seed);
        for level in levels() {
            let together = case.multiplied(level, Finish::Store);
            let last = Case {
                values: case.values[(rows - 1) * inputs..].to_vec(),
                weights: case.weights.clone(),
                inputs,
                bias: case.bias.clone(),
                rows: 1,
            };
            let alone = last.multiplied(level, Finish::Store);
            prop_assert_eq!(&together[(rows - 1) * 48..], &alone[..]);
        }
    }

    #[test]
    fn codes_are_within_half_a_step(inputs in 1usize..9, size in -30f32..30.0, seed: u64) {
        let mut random = Random(seed);
        let size = size.exp2();
        let values: Vec<f32> = (0..32 * inputs).map(|_| size * random.unit()).collect();
        for level in levels() {
          for range in [Range::Whole, Range::Symmetric] {
            let mut rows = ByteRows::new(level, 1, values.len()).unwrap();
            // SAFETY: the level is available.
            unsafe { rows.fill(&values, values.len(), range) };
            let RowScale { step, low } = rows.scales()[0];
            for (at, value) in values.iter().enumerate() {
                // SAFETY: a code for each value.
                let code = f32::from(unsafe { *rows.codes().add(at) });
                prop_assert!((step * code + low - value).abs() <= 0.501 * step, "{level:?}");
            }
          }
        }
    }
}

#[test]
fn equal_values_and_zero_weights_are_exact() {
    for value in [0.0, 3.5, -1e-40, f32::MIN_POSITIVE] {
        let case = Case {
            values: vec![value; 2 * 64],
            weights: vec![0.0; 16 * 64],
            inputs: 64,
            bias: vec![0.5; 16],
            rows: 2,
        };
        for level in levels() {
            let rows = case.quantized(level);
            assert_eq!(rows.scales()[0].low, value, "{level:?}");
            assert_eq!(
                case.multiplied(level, Finish::Store),
                [0.5; 32],
                "{level:?}"
            );
        }
    }
}
