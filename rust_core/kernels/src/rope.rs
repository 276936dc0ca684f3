//! Rotary position embedding (RoPE), with a table of cosines and sines.
//!
//! Address space is reserved for every position up to the context length, which costs no memory. The first
//! [`EAGER_POSITIONS`] are computed at load, and further ones before the first step that needs them, in chunks of
//! [`CHUNK`]: a context of a million tokens would take half a gigabyte and seconds.

use std::ops::Range;

use crate::arena::{Buffer, Plain};
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::simd::{Lanes, by_level};
use crate::spec::{RopeScaling, RopeScalingKind, RopeSpec, RopeStyle};

/// Positions whose cosines and sines are computed together.
const CHUNK: usize = 128;

/// Positions that are computed at load, so that steps within them compute none.
const EAGER_POSITIONS: usize = 8192;

/// Cosines and sines for every position and frequency.
#[derive(Debug)]
pub struct Rope {
    style: RopeStyle,
    /// Half of the elements among which pairs are formed.
    half: usize,
    /// Angle per position of each rotated pair of a head.
    frequencies: Vec<f32>,
    /// Factor of cosines and sines.
    magnitude: f32,
    /// `[positions, pairs]`: cosine and sine; zeros in chunks that are not computed.
    table: Buffer<[f32; 2]>,
    /// `[ceil(positions / CHUNK)]`: whether a chunk is computed.
    computed: Vec<bool>,
}

// SAFETY: plain numbers.
unsafe impl Plain for [f32; 2] {}

impl Rope {
    /// Tables for `positions` positions.
    ///
    /// # Errors
    /// The address space does not suffice.
    pub fn new(spec: &RopeSpec, positions: usize) -> Result<Self, KernelError> {
        let (frequencies, magnitude) = frequencies(spec, positions);
        let too_large =
            || KernelError::Memory("The RoPE table would not fit in memory.".to_owned());
        let entries = positions
            .checked_mul(frequencies.len())
            .ok_or_else(too_large)?;
        let mut rope = Self {
            style: spec.style,
            half: spec.dim / 2,
            magnitude,
            table: Buffer::new(entries)?,
            computed: vec![false; positions.div_ceil(CHUNK)],
            frequencies,
        };
        rope.prepare(0..positions.min(EAGER_POSITIONS));
        Ok(rope)
    }

    /// Compute what is missing for rotations at `positions`. Costs a look-up per chunk if nothing is.
    pub fn prepare(&mut self, positions: Range<usize>) {
        for chunk in positions.start / CHUNK..positions.end.div_ceil(CHUNK) {
            if !std::mem::replace(&mut self.computed[chunk], true) {
                self.compute(chunk);
            }
        }
    }

    #[cold]
    fn compute(&mut self, chunk: usize) {
        let pairs = self.frequencies.len();
        let first = chunk * CHUNK;
        let count = (CHUNK * pairs).min(self.table.len() - first * pairs);
        // SAFETY: `&mut self` owns the table; nothing else uses it.
        let table = unsafe { self.table.slice_mut(first * pairs, count) };
        for (position, row) in (first..).zip(table.chunks_exact_mut(pairs)) {
            for ([cos, sin], frequency) in row.iter_mut().zip(&self.frequencies) {
                // The angle is rounded to single precision, as in training.
                let angle = f64::from(position as f32 * frequency);
                *cos = (angle.cos() as f32) * self.magnitude;
                *sin = (angle.sin() as f32) * self.magnitude;
            }
        }
    }

    /// Rotate one head in place. The position was [prepared](Self::prepare).
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn rotate(&self, level: Level, head: &mut [f32], position: usize) {
        debug_assert!(self.computed[position / CHUNK]);
        let pairs = self.frequencies.len();
        // SAFETY: the table is written through `&mut self` only; the level is the caller's promise.
        unsafe {
            let angles = self.table.slice(position * pairs, pairs);
            rotate_head(level, self.style, self.half, head, angles);
        }
    }
}

/// Plain Rust, compiled for each level. Uses separate additions and multiplications, so that levels agree bit for bit.
///
/// # Safety
/// None of its own; `by_level` instantiates unsafe functions.
#[inline(always)]
#[allow(clippy::extra_unused_type_parameters, reason = "by_level's")]
unsafe fn rotate_body<L: Lanes>(
    style: RopeStyle,
    half: usize,
    head: &mut [f32],
    angles: &[[f32; 2]],
) {
    match style {
        RopeStyle::Half => {
            let (low, high) = head.split_at_mut(half);
            for ((a, b), [cos, sin]) in low.iter_mut().zip(high).zip(angles) {
                (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
            }
        }
        RopeStyle::Interleaved => {
            for (pair, [cos, sin]) in head.as_chunks_mut::<2>().0.iter_mut().zip(angles) {
                let [a, b] = *pair;
                *pair = [a * cos - b * sin, b * cos + a * sin];
            }
        }
    }
}

by_level! {
    /// # Safety
    /// The machine has the level.
    unsafe fn rotate_head(style: RopeStyle, half: usize, head: &mut [f32], angles: &[[f32; 2]]) = rotate_body;
}

/// Angle per position of each rotated pair, and the factor that cosines and sines are multiplied with.
fn frequencies(spec: &RopeSpec, positions: usize) -> (Vec<f32>, f32) {
    let dim = spec.dim as f64;
    let plain: Vec<f64> = (0..spec.rotated_pairs())
        .map(|pair| spec.theta.powf(-(2.0 * pair as f64) / dim))
        .collect();
    let single = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect();
    let divided = |divisors: &[f64]| {
        let pairs = plain.iter().zip(divisors);
        pairs.map(|(f, divisor)| (f / divisor) as f32).collect()
    };
    if !spec.divisors.is_empty() {
        return (divided(&spec.divisors), 1.0);
    }
    let scaling = &spec.scaling;
    match scaling.kind {
        RopeScalingKind::None => (single(plain), 1.0),
        RopeScalingKind::Linear => (
            single(plain.iter().map(|f| f / scaling.factor).collect()),
            1.0,
        ),
        RopeScalingKind::Llama3 => (
            single(plain.iter().map(|f| llama3(*f, scaling)).collect()),
            1.0,
        ),
        RopeScalingKind::Yarn => yarn(&plain, spec, scaling),
        RopeScalingKind::Longrope => {
            let divisors = if positions > scaling.original_context {
                &scaling.long_divisors
            } else {
                &scaling.short_divisors
            };
            (divided(divisors), longrope_magnitude(scaling))
        }
    }
}

/// LongRoPE's factor of cosines and sines (Ding et al. 2024).
fn longrope_magnitude(scaling: &RopeScaling) -> f32 {
    let derived = if scaling.factor <= 1.0 {
        1.0
    } else {
        (1.0 + scaling.factor.ln() / (scaling.original_context as f64).ln()).sqrt()
    };
    scaling.attention_factor.unwrap_or(derived) as f32
}

/// Llama 3.1 scaling: long wavelengths are scaled, short ones kept, and those between interpolated.
fn llama3(frequency: f64, scaling: &RopeScaling) -> f64 {
    let original = scaling.original_context as f64;
    let wavelength = std::f64::consts::TAU / frequency;
    if wavelength < original / scaling.high_freq_factor {
        return frequency;
    }
    if wavelength > original / scaling.low_freq_factor {
        return frequency / scaling.factor;
    }
    let smooth = (original / wavelength - scaling.low_freq_factor)
        / (scaling.high_freq_factor - scaling.low_freq_factor);
    (1.0 - smooth) * frequency / scaling.factor + smooth * frequency
}

/// YaRN scaling (Peng et al. 2023): a ramp between scaled and unscaled frequencies, and an attention magnitude.
fn yarn(plain: &[f64], spec: &RopeSpec, scaling: &RopeScaling) -> (Vec<f32>, f32) {
    let dim = spec.dim as f64;
    // The index of the pair that makes `rotations` full rotations over the original context.
    let pair_of = |rotations: f64| {
        let turns = scaling.original_context as f64 / (rotations * std::f64::consts::TAU);
        dim * turns.ln() / (2.0 * spec.theta.ln())
    };
    let (low, high) = (pair_of(scaling.beta_fast), pair_of(scaling.beta_slow));
    let (low, high) = match scaling.truncate {
        true => (low.floor(), high.ceil()),
        false => (low, high),
    };
    let (low, high) = (low.max(0.0), high.min(dim - 1.0));
    let high = if low == high { high + 0.001 } else { high };
    let frequencies = plain.iter().enumerate().map(|(pair, frequency)| {
        let ramp = ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
        (frequency / scaling.factor * ramp + frequency * (1.0 - ramp)) as f32
    });
    let derived = if scaling.factor <= 1.0 {
        1.0
    } else {
        0.1 * scaling.factor.ln() + 1.0
    };
    (
        frequencies.collect(),
        scaling.attention_factor.unwrap_or(derived) as f32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::tests::tiny_rope;

    fn spec(change: impl FnOnce(&mut serde_json::Value)) -> RopeSpec {
        let mut value = tiny_rope();
        change(&mut value);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn both_styles_rotate_the_same_pairs_in_their_own_order() {
        let half = Rope::new(&spec(|_| {}), 50).unwrap();
        let interleaved = spec(|v| v["style"] = "interleaved".into());
        let interleaved = Rope::new(&interleaved, 50).unwrap();
        let head: Vec<f32> = (0..16).map(|i| i as f32 - 7.5).collect();
        let mut rotated = head.clone();
        // SAFETY: this machine's own level.
        unsafe { half.rotate(Level::best(), &mut rotated, 37) };
        let mut permuted: Vec<f32> = (0..16).map(|i| head[i / 2 + i % 2 * 8]).collect();
        // SAFETY: as above.
        unsafe { interleaved.rotate(Level::best(), &mut permuted, 37) };
        for i in 0..16 {
            assert_eq!(permuted[i], rotated[i / 2 + i % 2 * 8]);
        }
        let angle = 37f64;
        let expected = -7.5 * angle.cos() - 0.5 * angle.sin();
        assert!((f64::from(rotated[0]) - expected).abs() < 1e-5);
    }

    /// A head rotated by the definition, at any position.
    fn rotated(spec: &RopeSpec, head: &[f32], position: usize) -> Vec<f32> {
        let (frequencies, magnitude) = frequencies(spec, 1);
        let mut rotated = head.to_vec();
        for (pair, frequency) in frequencies.iter().enumerate() {
            let angle = f64::from(position as f32 * frequency);
            let (cos, sin) = (
                angle.cos() as f32 * magnitude,
                angle.sin() as f32 * magnitude,
            );
            let (a, b) = (head[pair], head[pair + frequencies.len()]);
            (rotated[pair], rotated[pair + frequencies.len()]) =
                (a * cos - b * sin, b * cos + a * sin);
        }
        rotated
    }

    #[test]
    fn positions_computed_late_have_the_bits_of_the_definition() {
        let spec = spec(|v| {
            v["scaling"]["kind"] = "yarn".into();
            v["scaling"]["factor"] = 8.0.into();
            v["scaling"]["original_context"] = 64.into();
        });
        const LAST: usize = (1 << 20) - 30; // in an incomplete chunk
        let mut rope = Rope::new(&spec, LAST + 1).unwrap();
        let head: Vec<f32> = (0..16).map(|i| i as f32 - 7.5).collect();
        let ranges = [
            0..300,
            EAGER_POSITIONS - 1..EAGER_POSITIONS + 2,
            LAST - 200..LAST + 1,
            700_159..700_161, // the last position of a chunk and the first of the next
        ];
        for range in ranges.clone() {
            rope.prepare(range);
        }
        for position in ranges.into_iter().flatten() {
            let mut ours = head.clone();
            // SAFETY: this machine's own level.
            unsafe { rope.rotate(Level::best(), &mut ours, position) };
            assert_eq!(ours, rotated(&spec, &head, position), "{position}");
        }
        let computed = rope.computed.iter().filter(|&&computed| computed).count();
        assert_eq!(computed, EAGER_POSITIONS / CHUNK + 1 + 2 + 2);
    }

    #[test]
    fn an_absurd_context_is_an_error() {
        for positions in [1 << 46, usize::MAX] {
            let error = Rope::new(&spec(|_| {}), positions).unwrap_err();
            assert!(matches!(error, KernelError::Memory(_)), "{error}");
        }
    }

    #[test]
    fn position_zero_is_the_identity() {
        let rope = Rope::new(&spec(|_| {}), 1).unwrap();
        let mut head: Vec<f32> = (0..16).map(|i| i as f32).collect();
        // SAFETY: this machine's own level.
        unsafe { rope.rotate(Level::best(), &mut head, 0) };
        assert!(head.iter().enumerate().all(|(i, &x)| x == i as f32));
    }

    #[test]
    fn rope_scalings_change_the_expected_frequencies() {
        let scaled = |kind: &str| {
            frequencies(
                &spec(|v| {
                    v["scaling"]["kind"] = kind.into();
                    v["scaling"]["factor"] = 8.0.into();
                    v["scaling"]["original_context"] = 64.into();
                }),
                1,
            )
        };
        let (plain, _) = frequencies(&spec(|_| {}), 1);
        let (linear, _) = scaled("linear");
        assert!(
            plain
                .iter()
                .zip(&linear)
                .all(|(p, l)| (p / l - 8.0).abs() < 1e-4)
        );
        let (llama3, magnitude) = scaled("llama3");
        assert_eq!((llama3[0], magnitude), (plain[0], 1.0));
        assert!((plain[7] / llama3[7] - 8.0).abs() < 1e-4);
        let (yarn, magnitude) = scaled("yarn");
        assert!((plain[7] / yarn[7] - 8.0).abs() < 1e-4);
        assert!((magnitude - (0.1 * 8f32.ln() + 1.0)).abs() < 1e-6);
    }

    #[test]
    fn divisors_divide_frequencies() {
        let (plain, _) = frequencies(&spec(|_| {}), 1);
        let divisors = spec(|v| v["divisors"] = vec![2.0; 8].into());
        let (divided, _) = frequencies(&divisors, 1);
        assert!(
            plain
                .iter()
                .zip(&divided)
                .all(|(p, d)| (p / d - 2.0).abs() < 1e-5)
        );
    }

    #[test]
    fn longrope_takes_its_long_divisors_where_sequences_may_be_longer_than_in_training() {
        let spec = spec(|v| {
            v["scaling"]["kind"] = "longrope".into();
            v["scaling"]["factor"] = 16.0.into();
            v["scaling"]["original_context"] = 64.into();
            v["scaling"]["short_divisors"] = vec![1.5; 8].into();
            v["scaling"]["long_divisors"] = vec![3.0; 8].into();
        });
        let ((short, magnitude), (long, _)) = (frequencies(&spec, 64), frequencies(&spec, 65));
        assert!((short[3] / long[3] - 2.0).abs() < 1e-6);
        let expected = (1.0 + 16f64.ln() / 64f64.ln()).sqrt();
        assert!((f64::from(magnitude) - expected).abs() < 1e-6);
    }

    #[test]
    fn pairs_beyond_the_rotated_ones_stay_as_they_are() {
        let part = spec(|v| {
            v["dim"] = 12.into();
            v["pairs"] = 2.into();
        });
        for (style, touched) in [("half", [0, 1, 6, 7]), ("interleaved", [0, 1, 2, 3])] {
            let mut part = part.clone();
            part.style = if style == "half" {
                RopeStyle::Half
            } else {
                RopeStyle::Interleaved
            };
            let rope = Rope::new(&part, 9).unwrap();
            let head: Vec<f32> = (0..16).map(|i| i as f32 + 1.0).collect();
            let mut rotated = head.clone();
            // SAFETY: this machine's own level.
            unsafe { rope.rotate(Level::best(), &mut rotated, 7) };
            let changed: Vec<usize> = (0..16).filter(|&i| rotated[i] != head[i]).collect();
            assert_eq!(changed, touched, "{style}");
        }
    }
}
