//! Gumbel-max sampling.

use super::{RowContext, Scratch, select, truncate};
use crate::dispatch::Level;

const GOLDEN_RATIO_64: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of splitmix64 (Steele et al. 2014).
pub(super) fn mix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Hash of a row's seed and position.
pub(super) fn row_key(seed: u64, position: u64) -> u64 {
    mix64(seed ^ mix64(position))
}

/// 24 random bits for a token.
fn bits_of(row_key: u64, id: usize) -> u32 {
    (mix64(row_key ^ (id as u64).wrapping_mul(GOLDEN_RATIO_64)) >> 40) as u32
}

/// Standard Gumbel noise from 24 random bits.
pub(super) fn gumbel(bits: u32) -> f64 {
    let uniform = (f64::from(bits) + 0.5) / f64::from(1u32 << 24);
    -(-uniform.ln()).ln()
}

/// Upper bound of [`gumbel`] without a logarithm: `-ln(u) ≥ 1 - u`, and 1 - u is above
/// 2^-(leading ones + 1).
fn gumbel_bound(bits: u32) -> f64 {
    let ones = (!(bits << 8)).leading_zeros().min(24);
    f64::from(ones + 1) * std::f64::consts::LN_2 + 1e-9
}

/// The largest (noisy logit, id) so far.
struct Best {
    row_key: u64,
    temperature: f32,
    value: f64,
    id: usize,
}

impl Best {
    /// Update with a token. Most tokens are rejected by the bound, at the cost of a hash and a comparison.
    fn consider(&mut self, logit: f32, id: usize) {
        let scaled = f64::from(logit / self.temperature);
        let bits = bits_of(self.row_key, id);
        if scaled + gumbel_bound(bits) < self.value {
            return;
        }
        let value = scaled + gumbel(bits);
        if value > self.value || (value == self.value && id < self.id) {
            (self.value, self.id) = (value, id);
        }
    }
}

/// Sample a token. `scratch.maxima` must be those of `logits`.
///
/// # Safety
/// The machine has the level.
pub(super) unsafe fn sample_gumbel_max(
    level: Level,
    logits: &[f32],
    row: &RowContext<'_>,
    scratch: &mut Scratch,
) -> usize {
    let mut best = Best {
        row_key: row_key(row.params.seed, row.position),
        temperature: row.params.temperature,
        value: f64::NEG_INFINITY,
        id: usize::MAX,
    };
    // The most probable token is always a candidate. Considering it first lets the bound reject most others.
    let most_probable = select::argmax(logits, &scratch.maxima);
    best.consider(logits[most_probable], most_probable);
    // SAFETY: the level is the caller's promise.
    match unsafe { truncate::truncate(level, logits, row, scratch) } {
        truncate::Candidates::Keys => {
            for &key in &scratch.keys {
                let id = select::id_of(key);
                best.consider(logits[id], id);
            }
        }
        truncate::Candidates::All => {
            let noise_bound = gumbel_bound(u32::MAX >> 8);
            for (run, &max) in scratch.maxima.iter().enumerate() {
                // Even the largest possible noise cannot raise this run's maximum above the current best.
                if f64::from(max / row.params.temperature) + noise_bound < best.value {
                    continue;
                }
                let start = run * select::RUN;
                let end = logits.len().min(start + select::RUN);
                for (at, &logit) in logits[start..end].iter().enumerate() {
                    best.consider(logit, start + at);
                }
            }
        }
    }
    best.id
}
