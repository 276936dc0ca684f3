//! Recurrent kernels against naive computations in double precision, and against themselves with other chunks.

use super::conv::{Columns, ConvRun, ConvWeights, convolve_gated, convolve_silu};
use super::head::{HeadRun, HeadWeights, Heads, TokenRows};
use super::scan::{HeadShape, ScanScratch};
use crate::dispatch::Level;
use crate::guarded::{Guarded, on_both_sides};
use crate::pack::tests::Random;
use crate::simd::LANES;

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.available())
}

fn random(len: usize, random: &mut Random) -> Vec<f32> {
    (0..len).map(|_| random.unit()).collect()
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// Lengths that sum to `tokens`.
fn chunks(tokens: usize, seed: usize) -> Vec<usize> {
    let (mut left, mut lengths) = (tokens, Vec::new());
    while left > 0 {
        let length = left.min(1 + (seed + 7 * lengths.len()) % 19);
        lengths.push(length);
        left -= length;
    }
    lengths
}

fn assert_close(actual: &[f32], expected: &[f64], within: f64, what: &str) {
    for (at, (&actual, &expected)) in actual.iter().zip(expected).enumerate() {
        let error = (f64::from(actual) - expected).abs();
        assert!(
            error <= within * (1.0 + expected.abs()),
            "{what}: {at}: {actual} is not {expected}"
        );
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Silu,
    Gated,
}

/// Inputs of a convolution of 16 channels: `[tokens, 16]` each.
struct ConvCase {
    weights: ConvWeights,
    taps: Vec<f32>,
    bias: Vec<f32>,
    x: Vec<f32>,
    before: Vec<f32>,
    after: Vec<f32>,
    tokens: usize,
}

impl ConvCase {
    fn new(kernel: usize, tokens: usize, seed: u64) -> Self {
        let mut source = Random(seed);
        let (taps, bias) = (
            random(LANES * kernel, &mut source),
            random(LANES, &mut source),
        );
        Self {
            weights: ConvWeights::new(kernel, &taps, Some(&bias)),
            taps,
            bias,
            x: random(tokens * LANES, &mut source),
            before: random(tokens * LANES, &mut source),
            after: random(tokens * LANES, &mut source),
            tokens,
        }
    }

    /// The definition, in double precision.
    fn expected(&self, form: Form) -> Vec<f64> {
        let kernel = self.weights.kernel;
        let input = |token: usize, lane: usize| {
            let at = token * LANES + lane;
            let gate = if form == Form::Gated {
                self.before[at]
            } else {
                1.0
            };
            f64::from(self.x[at]) * f64::from(gate)
        };
        let output = |token: usize, lane: usize| {
            let mut sum = f64::from(self.bias[lane]);
            for back in 0..kernel.min(token + 1) {
                let tap = f64::from(self.taps[lane * kernel + kernel - 1 - back]);
                sum += tap * input(token - back, lane);
            }
            match form {
                Form::Silu => silu(sum),
                Form::Gated => sum * f64::from(self.after[token * LANES + lane]),
            }
        };
        let all = (0..self.tokens).flat_map(|token| (0..LANES).map(move |lane| (token, lane)));
        all.map(|(token, lane)| output(token, lane)).collect()
    }

    /// Outputs and final history, in chunks.
    fn run(&self, level: Level, form: Form, chunks: &[usize]) -> (Vec<f32>, Vec<f32>) {
        let mut output = Guarded::filled(f32::NAN, self.tokens * LANES);
        // What an earlier sequence left must not matter.
        let mut history = Guarded::filled(f32::NAN, self.weights.history_len());
        let mut first = 0;
        let part = |values: &[f32], rows: &std::ops::Range<usize>| {
            let mut guarded = Guarded::filled(0.0, rows.len() * LANES);
            guarded.copy_from_slice(&values[rows.start * LANES..rows.end * LANES]);
            guarded
        };
        let columns = |values: *mut f32| Columns {
            start: values,
            stride: LANES,
        };
        for &tokens in chunks {
            let rows = first..first + tokens;
            let mut x = part(&self.x, &rows);
            let (mut before, mut after) = (part(&self.before, &rows), part(&self.after, &rows));
            let run = ConvRun {
                weights: &self.weights,
                panel: 0,
                history: history.as_mut_ptr(),
                fresh: first == 0,
                tokens,
                input: columns(x.as_mut_ptr()),
                output: columns(output[first * LANES..].as_mut_ptr()),
            };
            let (before, after) = (columns(before.as_mut_ptr()), columns(after.as_mut_ptr()));
            // SAFETY: the level is available; the arrays have these sizes.
            unsafe {
                match form {
                    Form::Silu => convolve_silu(level, run),
                    Form::Gated => convolve_gated(level, run, before, after),
                }
            }
            first = rows.end;
        }
        (output.to_vec(), history.to_vec())
    }
}

#[test]
fn convolutions_match_double_precision() {
    on_both_sides(|| {
        for kernel in 1..=8 {
            for tokens in [1, 2, 3, 4, 5, 23] {
                let case = ConvCase::new(kernel, tokens, (kernel * 100 + tokens) as u64);
                for form in [Form::Silu, Form::Gated] {
                    let expected = case.expected(form);
                    for level in levels() {
                        let (output, _) = case.run(level, form, &[tokens]);
                        let what = format!("{level:?} {form:?} {kernel} {tokens}");
                        assert_close(&output, &expected, 2e-6, &what);
                    }
                }
            }
        }
    });
}

#[test]
fn convolutions_have_the_same_bits_in_any_chunks() {
    for kernel in [2, 3, 4, 7] {
        let case = ConvCase::new(kernel, 61, kernel as u64);
        for level in levels() {
            for form in [Form::Silu, Form::Gated] {
                let whole = case.run(level, form, &[61]);
                for seed in 0..6 {
                    let cut = case.run(level, form, &chunks(61, seed));
                    assert_eq!(cut, whole, "{level:?} {form:?} {kernel}");
                }
                let single = case.run(level, form, &[1; 61]);
                assert_eq!(single, whole, "{level:?} {form:?} {kernel}");
            }
        }
    }
}

#[test]
fn taps_are_arranged_by_panels() {
    let weights: Vec<f32> = (0..34).map(|at| at as f32).collect();
    let arranged = ConvWeights::new(2, &weights, None);
    assert_eq!((arranged.panels(), arranged.history_len()), (2, 16));
}

/// Projected rows of a layer and its weights.
struct HeadsCase {
    heads: Heads,
    weights: HeadWeights,
    rows: Vec<f32>,
    tokens: usize,
}

impl HeadsCase {
    fn new(heads: Heads, tokens: usize, seed: u64) -> Self {
        let mut source = Random(seed);
        let rates = random(heads.count, &mut source);
        let delta = heads.shape.delta;
        Self {
            heads,
            weights: HeadWeights {
                rates: rates.into_iter().map(|rate| -0.1 - rate.abs()).collect(),
                skip: random(if delta { 0 } else { heads.count }, &mut source),
                norm: random(if delta { heads.shape.value_dim } else { 0 }, &mut source),
                norm_eps: 1e-6,
            },
            rows: random(tokens * heads.layout().width, &mut source),
            tokens,
        }
    }

    /// The definition, in double precision: `[tokens, heads * value_dim]`.
    fn expected(&self) -> Vec<f64> {
        let (heads, layout) = (self.heads, self.heads.layout());
        let HeadShape {
            key_dim,
            value_dim,
            delta,
        } = heads.shape;
        let mut outputs = vec![0.0; self.tokens * heads.outputs()];
        for head in 0..heads.count {
            let mut state = vec![vec![0.0; value_dim]; key_dim];
            for token in 0..self.tokens {
                let row = &self.rows[token * layout.width..][..layout.width];
                let part = |start: usize, len: usize| -> Vec<f64> {
                    row[start..start + len]
                        .iter()
                        .map(|&x| f64::from(x))
                        .collect()
                };
                let key = heads.key_of(head);
                let mut q = part(layout.q + key * key_dim, key_dim);
                let mut k = part(layout.k + key * key_dim, key_dim);
                let v = part(layout.v + head * value_dim, value_dim);
                let z = part(layout.z + head * value_dim, value_dim);
                let dt = part(layout.time_step + head, 1)[0].exp().ln_1p();
                let decay = (f64::from(self.weights.rates[head]) * dt).exp();
                let mut strength = dt;
                if delta {
                    for x in [&mut q, &mut k] {
                        let length = (x.iter().map(|x| x * x).sum::<f64>() + 1e-6).sqrt();
                        x.iter_mut().for_each(|x| *x /= length);
                    }
                    q.iter_mut().for_each(|q| *q /= (key_dim as f64).sqrt());
                    strength = 1.0 / (1.0 + (-part(layout.strength + head, 1)[0]).exp());
                }
                let mut output = vec![0.0; value_dim];
                for column in 0..value_dim {
                    let mut value = v[column];
                    for i in 0..key_dim {
                        state[i][column] *= decay;
                        if delta {
                            value -= state[i][column] * k[i];
                        }
                    }
                    for i in 0..key_dim {
                        state[i][column] += k[i] * value * strength;
                        output[column] += state[i][column] * q[i];
                    }
                    if !delta {
                        output[column] += f64::from(self.weights.skip[head]) * v[column];
                    }
                }
                if delta {
                    let mean = output.iter().map(|x| x * x).sum::<f64>() / value_dim as f64;
                    for (output, norm) in output.iter_mut().zip(&self.weights.norm) {
                        *output *= f64::from(*norm) / (mean + 1e-6).sqrt();
                    }
                }
                let to = token * heads.outputs() + head * value_dim;
                for column in 0..value_dim {
                    outputs[to + column] = output[column] * silu(z[column]);
                }
            }
        }
        outputs
    }

    /// Outputs and final states, in chunks.
    fn run(&self, level: Level, chunks: &[usize]) -> (Vec<f32>, Vec<f32>) {
        let (heads, shape) = (self.heads, self.heads.shape);
        let width = heads.layout().width;
        let mut rows = Guarded::filled(0.0, self.rows.len());
        rows.copy_from_slice(&self.rows);
        let mut output = Guarded::filled(f32::NAN, self.tokens * heads.outputs());
        // What an earlier sequence left must not matter.
        let mut states = Guarded::filled(f32::NAN, heads.count * shape.state_len());
        let mut scratch = ScanScratch::new(shape.key_dim, shape.value_dim).unwrap();
        let mut first = 0;
        for &tokens in chunks {
            for head in 0..heads.count {
                let run = HeadRun {
                    heads: &heads,
                    weights: &self.weights,
                    head,
                    tokens,
                    projected: TokenRows {
                        start: rows[first * width..].as_mut_ptr(),
                        stride: width,
                    },
                    output: TokenRows {
                        start: output[first * heads.outputs()..].as_mut_ptr(),
                        stride: heads.outputs(),
                    },
                    state: states[head * shape.state_len()..].as_mut_ptr(),
                    fresh: first == 0,
                };
                // SAFETY: the level is available; the arrays have these sizes.
                unsafe { run.run(level, &mut scratch) };
            }
            first += tokens;
        }
        (output.to_vec(), states.to_vec())
    }
}

/// (heads, heads with keys, key dim, value dim)
const SHAPES: [(usize, usize, usize, usize); 5] = [
    (1, 1, 1, 1),
    (4, 2, 16, 32),
    (6, 2, 24, 40),
    (2, 2, 128, 128),
    (3, 1, 17, 15),
];

fn cases() -> impl Iterator<Item = HeadsCase> {
    SHAPES
        .into_iter()
        .flat_map(|(count, key_count, key_dim, value_dim)| {
            [(false, false), (true, false), (true, true)].map(|(delta, tiled)| {
                let heads = Heads {
                    shape: HeadShape {
                        key_dim,
                        value_dim,
                        delta,
                    },
                    count,
                    key_count,
                    tiled,
                };
                HeadsCase::new(heads, 37, (count * 1000 + key_dim) as u64)
            })
        })
}

#[test]
fn heads_match_double_precision() {
    on_both_sides(|| {
        for case in cases() {
            let expected = case.expected();
            for level in levels() {
                let (output, _) = case.run(level, &[case.tokens]);
                assert_close(
                    &output,
                    &expected,
                    2e-5,
                    &format!("{level:?} {:?}", case.heads),
                );
            }
        }
    });
}

#[test]
fn heads_have_the_same_bits_in_any_chunks() {
    for case in cases() {
        for level in levels() {
            let whole = case.run(level, &[case.tokens]);
            for seed in 0..4 {
                let cut = case.run(level, &chunks(case.tokens, seed));
                assert_eq!(cut, whole, "{level:?} {:?}", case.heads);
            }
            let single = case.run(level, &vec![1; case.tokens]);
            assert_eq!(single, whole, "{level:?} {:?}", case.heads);
        }
    }
}

#[test]
fn tiled_heads_share_keys_in_turn() {
    let mut heads = cases().nth(6).unwrap().heads; // six heads, two keys
    heads.tiled = false;
    let keys = |heads: Heads| (0..6).map(|head| heads.key_of(head)).collect::<Vec<_>>();
    assert_eq!(keys(heads), [0, 0, 0, 1, 1, 1]);
    heads.tiled = true;
    assert_eq!(keys(heads), [0, 1, 0, 1, 0, 1]);
}
