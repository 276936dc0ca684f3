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
use crate::spec::{ModelSpec, RopeScaling, RopeScalingKind, RopeStyle};

/// Positions whose cosines and sines are computed together.
const CHUNK: usize = 128;

/// Positions that are computed at load, so that steps within them compute none.
const EAGER_POSITIONS: usize = 8192;

/// Cosines and sines for every position and frequency.
#[derive(Debug)]
pub struct Rope {
    style: RopeStyle,
    /// Angle per position of each pair of a head.
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
    /// Tables for `positions` positions. `factors` divides each frequency (the `rope_freqs.weight` of GGUF files) and replaces
    /// the spec's scaling of kind `llama3`.
    ///
    /// # Errors
    /// The address space does not suffice.
    pub fn new(
        spec: &ModelSpec,
        factors: Option<&[f32]>,
        positions: usize,
    ) -> Result<Self, KernelError> {
        let (frequencies, magnitude) = frequencies(spec, factors);
        let too_large =
            || KernelError::Memory("The RoPE table would not fit in memory.".to_owned());
        let entries = positions
            .checked_mul(frequencies.len())
            .ok_or_else(too_large)?;
        let mut rope = Self {
            style: spec.rope_style,
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
            rotate_head(level, self.style, head, angles);
        }
    }
}

/// Plain Rust, compiled for each level. Uses separate additions and multiplications, so that levels agree bit for bit.
///
/// # Safety
/// None of its own; `by_level` instantiates unsafe functions.
#[inline(always)]
#[allow(clippy::extra_unused_type_parameters, reason = "by_level's")]
unsafe fn rotate_body<L: Lanes>(style: RopeStyle, head: &mut [f32], angles: &[[f32; 2]]) {
    match style {
        RopeStyle::Half => {
            let (low, high) = head.split_at_mut(angles.len());
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
    unsafe fn rotate_head(style: RopeStyle, head: &mut [f32], angles: &[[f32; 2]]) = rotate_body;
}

/// Angle per position of each pair, and the factor that cosines and sines are multiplied with.
fn frequencies(spec: &ModelSpec, factors: Option<&[f32]>) -> (Vec<f32>, f32) {
    let dim = spec.head_dim as f64;
    let plain: Vec<f64> = (0..spec.head_dim / 2)
        .map(|pair| spec.rope_theta.powf(-(2.0 * pair as f64) / dim))
        .collect();
    if let Some(factors) = factors {
        let divided = plain
            .iter()
            .zip(factors)
            .map(|(f, factor)| (f / f64::from(*factor)) as f32);
        return (divided.collect(), 1.0);
    }
    let scaling = &spec.rope_scaling;
    let single = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect();
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
    }
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
fn yarn(plain: &[f64], spec: &ModelSpec, scaling: &RopeScaling) -> (Vec<f32>, f32) {
    let dim = spec.head_dim as f64;
    // The index of the pair that makes `rotations` full rotations over the original context.
    let pair_of = |rotations: f64| {
        let turns = scaling.original_context as f64 / (rotations * std::f64::consts::TAU);
        dim * turns.ln() / (2.0 * spec.rope_theta.ln())
    };
    let low = pair_of(scaling.beta_fast).floor().max(0.0);
    let high = pair_of(scaling.beta_slow).ceil().min(dim - 1.0);
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
    use crate::spec::tests::tiny_json;

    fn spec(change: impl FnOnce(&mut serde_json::Value)) -> ModelSpec {
        let mut value = tiny_json();
        change(&mut value);
        ModelSpec::from_json(&value.to_string()).unwrap()
    }

    #[test]
    fn both_styles_rotate_the_same_pairs_in_their_own_order() {
        let half = Rope::new(&spec(|_| {}), None, 50).unwrap();
        let interleaved = spec(|v| v["rope_style"] = "interleaved".into());
        let interleaved = Rope::new(&interleaved, None, 50).unwrap();
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
    fn rotated(spec: &ModelSpec, head: &[f32], position: usize) -> Vec<f32> {
        let (frequencies, magnitude) = frequencies(spec, None);
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
            v["rope_scaling"]["kind"] = "yarn".into();
            v["rope_scaling"]["factor"] = 8.0.into();
            v["rope_scaling"]["original_context"] = 64.into();
        });
        const LAST: usize = (1 << 20) - 30; // in an incomplete chunk
        let mut rope = Rope::new(&spec, None, LAST + 1).unwrap();
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
            let error = Rope::new(&spec(|_| {}), None, positions).unwrap_err();
            assert!(matches!(error, KernelError::Memory(_)), "{error}");
        }
    }

    #[test]
    fn position_zero_is_the_identity() {
        let rope = Rope::new(&spec(|_| {}), None, 1).unwrap();
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
                    v["rope_scaling"]["kind"] = kind.into();
                    v["rope_scaling"]["factor"] = 8.0.into();
                    v["rope_scaling"]["original_context"] = 64.into();
                }),
                None,
            )
        };
        let (plain, _) = frequencies(&spec(|_| {}), None);
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
    fn frequency_factors_of_the_file_divide_frequencies() {
        let factors = [2.0; 8];
        let (plain, _) = frequencies(&spec(|_| {}), None);
        let (divided, _) = frequencies(&spec(|_| {}), Some(&factors));
        assert!(
            plain
                .iter()
                .zip(&divided)
                .all(|(p, d)| (p / d - 2.0).abs() < 1e-5)
        );
    }
}
