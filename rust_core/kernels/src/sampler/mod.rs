//! Sampling of one row of logits, inside the step.
//!
//! The algorithm, mirrored in numpy by `engine/executors/reference_sampler.py`:
//! 1. Logprobs, if requested: log-softmax of the raw logits; alternatives by logprob, then lowest id.
//! 2. Tokens that the row's mask forbids, if it has one, get the logit -inf. Then logit bias is added.
//! 3. Repetition penalty p on every token of prompt and output: `logit > 0 ? logit / p : logit * p`.
//! 4. Presence and frequency penalties on output tokens. Counts are computed from the token table, so the
//!    sampler is stateless. Then the DRY penalty, see [`dry`].
//! 5. Temperature 0: the largest logit wins, ties by lowest id. Otherwise divide by the temperature.
//! 6. Top-k (ties at the k-th by lowest id); then, on the remaining tokens, min-p (probability at least
//!    `min_p` times the largest) and top-p (smallest prefix, most probable first, that reaches `top_p`),
//!    always keeping the most probable token.
//! 7. Gumbel-max: the largest `logit + g(id)` wins, ties by lowest id, with
//!    `g = -ln(-ln(u))`, `u = ((h >> 40) + 0.5) / 2^24`,
//!    `h = mix64(mix64(seed ^ mix64(position)) ^ (id * 0x9E3779B97F4A7C15))`, where mix64 is splitmix64's
//!    finaliser. A sampled token depends only on logits, seed and position.
//!
//! Cost: a few passes over the vocabulary, which is never sorted. A row whose logits have a NaN or +inf, or
//! nothing above -inf (before or after its mask), fails without affecting other rows.

pub mod dry;
mod gumbel;
pub mod mask;
mod penalties;
pub mod row_sampler;
mod score;
mod select;
mod truncate;

use crate::dispatch::Level;
use crate::simd::{LANES, Lanes, by_level};

pub use score::{Scored, score, token_id_logprobs};

/// Largest number of alternatives per row; `MAX_TOP_LOGPROBS` in Python.
pub const MAX_TOP_LOGPROBS: usize = 20;

/// Largest number of token ids per row whose logprobs are reported; `MAX_LOGPROB_TOKEN_IDS` in Python.
pub const MAX_LOGPROB_TOKEN_IDS: usize = 64;

/// Per-row parameters; same layout as `SAMPLING_DTYPE` in `engine/executors/base.py`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingRow {
    pub temperature: f32,
    pub top_p: f32,
    pub min_p: f32,
    pub repetition_penalty: f32,
    pub presence_penalty: f32,
    pub frequency_penalty: f32,
    /// 0: no DRY penalty.
    pub dry_multiplier: f32,
    pub dry_base: f32,
    pub dry_allowed_length: i32,
    /// -1: all tokens.
    pub dry_penalty_last_n: i32,
    /// The row's sequence breakers: a range of the step's patterns.
    pub first_breaker: i32,
    pub num_breakers: i32,
    pub top_k: i32,
    /// -1: no logprobs; k ≥ 0: the sampled token's logprob and k alternatives.
    pub num_logprobs: i32,
    pub seed: u64,
}

/// Name, byte offset and size of every field of [`SamplingRow`], for the test that compares it with
/// `SAMPLING_DTYPE`.
pub const SAMPLING_ROW_LAYOUT: [(&str, usize, usize); 15] = {
    use std::mem::offset_of;
    [
        ("temperature", offset_of!(SamplingRow, temperature), 4),
        ("top_p", offset_of!(SamplingRow, top_p), 4),
        ("min_p", offset_of!(SamplingRow, min_p), 4),
        (
            "repetition_penalty",
            offset_of!(SamplingRow, repetition_penalty),
            4,
        ),
        (
            "presence_penalty",
            offset_of!(SamplingRow, presence_penalty),
            4,
        ),
        (
            "frequency_penalty",
            offset_of!(SamplingRow, frequency_penalty),
            4,
        ),
        ("dry_multiplier", offset_of!(SamplingRow, dry_multiplier), 4),
        ("dry_base", offset_of!(SamplingRow, dry_base), 4),
        (
            "dry_allowed_length",
            offset_of!(SamplingRow, dry_allowed_length),
            4,
        ),
        (
            "dry_penalty_last_n",
            offset_of!(SamplingRow, dry_penalty_last_n),
            4,
        ),
        ("first_breaker", offset_of!(SamplingRow, first_breaker), 4),
        ("num_breakers", offset_of!(SamplingRow, num_breakers), 4),
        ("top_k", offset_of!(SamplingRow, top_k), 4),
        ("num_logprobs", offset_of!(SamplingRow, num_logprobs), 4),
        ("seed", offset_of!(SamplingRow, seed), 8),
    ]
};

impl SamplingRow {
    /// The parameters in a record of `SAMPLING_DTYPE`; None if it has another size.
    pub fn read(record: &[u8]) -> Option<Self> {
        if record.len() != size_of::<Self>() {
            return None;
        }
        // SAFETY: a whole record, whose fields are numbers of which every bit pattern is one.
        Some(unsafe { record.as_ptr().cast::<Self>().read_unaligned() })
    }

    /// Whether all are in range, in a step with so many entries of breaker tails.
    pub fn is_sane(&self, tails: usize) -> bool {
        self.temperature >= 0.0
            && self.temperature.is_finite()
            && self.top_p > 0.0
            && (0.0..=1.0).contains(&self.min_p)
            && self.repetition_penalty > 0.0
            && self.repetition_penalty.is_finite()
            && self.presence_penalty.is_finite()
            && self.frequency_penalty.is_finite()
            && (self.dry_multiplier == 0.0 || self.has_sane_dry(tails))
            && self.top_k >= 0
            && (-1..=MAX_TOP_LOGPROBS as i32).contains(&self.num_logprobs)
    }

    fn has_sane_dry(&self, tails: usize) -> bool {
        (0.0..=f32::MAX).contains(&self.dry_multiplier)
            && (1.0..=f32::MAX).contains(&self.dry_base)
            && self.dry_allowed_length >= 0
            && self.dry_penalty_last_n >= -1
            && self.first_breaker >= 0
            && self.num_breakers >= 0
            && (self.first_breaker as usize + self.num_breakers as usize) * dry::MAX_BREAKER_TAIL
                <= tails
    }

    fn dry(&self) -> dry::Params {
        dry::Params {
            multiplier: self.dry_multiplier,
            base: self.dry_base,
            allowed_length: self.dry_allowed_length as usize,
            last_n: usize::try_from(self.dry_penalty_last_n).unwrap_or(usize::MAX),
        }
    }

    /// Whether sampling reads the row's tokens.
    pub fn reads_tokens(&self) -> bool {
        self.repetition_penalty != 1.0
            || self.presence_penalty != 0.0
            || self.frequency_penalty != 0.0
            || self.dry_multiplier != 0.0
    }
}

/// A row's inputs to sampling, other than its logits.
#[derive(Debug, Clone, Copy)]
pub struct RowContext<'a> {
    pub params: &'a SamplingRow,
    /// Prompt and output tokens so far, all below the vocabulary size; may be empty if there is no penalty.
    pub tokens: &'a [i32],
    /// Tokens from here on count as output for presence and frequency penalties.
    pub penalty_start: usize,
    /// Position of the new token: the number of tokens so far.
    pub position: u64,
    pub bias_ids: &'a [i32],
    pub bias_values: &'a [f32],
    /// Sequence breakers of the DRY penalty.
    pub breakers: dry::Breakers<'a>,
    /// One bit per token, 1 if allowed; None allows all. See [`mask`].
    pub mask: Option<&'a [u32]>,
}

/// Result of sampling a row. Alternatives are written to the slices given to [`sample`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampled {
    /// None if the logits were unusable.
    pub token: Option<i32>,
    /// NaN unless requested.
    pub logprob: f32,
}

/// Per-worker scratch memory for sampling. Nothing is allocated after construction.
#[derive(Debug)]
pub struct Scratch {
    /// Sortable candidates, see [`select`].
    keys: Vec<u64>,
    /// Largest logit of each run of [`select::RUN`] logits.
    maxima: Vec<f32>,
    /// Copy of `maxima` that selection may reorder.
    order: Vec<f32>,
    /// Occurrences of each token in the output; all zero between rows.
    counts: Vec<u32>,
    /// Whether a token has been penalised for repetition; all false between rows.
    seen: Vec<bool>,
    /// Raw logits of tokens changed by bias or penalties, in the order of the changes.
    raw: Vec<(u32, f32)>,
    dry: dry::Scratch,
}

impl Scratch {
    /// For a vocabulary and rows of at most `max_tokens` tokens.
    pub fn new(vocab: usize, max_tokens: usize) -> Self {
        Self {
            keys: Vec::with_capacity(vocab),
            maxima: Vec::with_capacity(vocab.div_ceil(select::RUN)),
            order: Vec::with_capacity(vocab.div_ceil(select::RUN)),
            counts: vec![0; vocab],
            seen: vec![false; vocab],
            raw: Vec::with_capacity(3 * vocab),
            dry: dry::Scratch::new(vocab, max_tokens),
        }
    }

    /// The logit that `token` had before bias and penalties.
    fn raw_logit(&self, token: usize, logits: &[f32]) -> f32 {
        let saved = self.raw.iter().find(|(id, _)| *id as usize == token);
        saved.map_or(logits[token], |&(_, raw)| raw)
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn sum_exp_body<L: Lanes>(logits: &[f32], shift: f32, scale: f32) -> f64 {
    let (chunks, tail) = logits.as_chunks::<LANES>();
    let mut total = 0.0;
    // Runs are summed in double precision; within one, 256 values in single precision lose nothing
    // that the exponentials have not lost before.
    for run in chunks.chunks(16) {
        // SAFETY: sixteen elements each; the level's instructions are enabled by `by_level`.
        unsafe {
            let mut sum = L::splat(0.0);
            for chunk in run {
                let x = L::load(chunk.as_ptr())
                    .sub(L::splat(shift))
                    .mul(L::splat(scale));
                sum = sum.add(x.exp());
            }
            total += f64::from(sum.sum());
        }
    }
    total
        + tail
            .iter()
            .map(|x| f64::from((x - shift) * scale).exp())
            .sum::<f64>()
}

by_level! {
    /// `Σ exp((logit - shift) * scale)`, shift at least the largest logit.
    ///
    /// # Safety
    /// The machine has the level.
    unsafe fn sum_exp(logits: &[f32], shift: f32, scale: f32) -> f64 = sum_exp_body;
}

/// `ln Σ exp(logit)` of raw logits, of which the largest is given.
///
/// # Safety
/// The machine has the level.
unsafe fn log_sum_exp(level: Level, logits: &[f32], largest: f32) -> f64 {
    // SAFETY: the level is the caller's promise.
    f64::from(largest) + unsafe { sum_exp(level, logits, largest, 1.0) }.ln()
}

/// Fill `ids` and `logprobs` with the most probable tokens. Entries beyond the vocabulary size are left unchanged.
/// `scratch.maxima` must be those of `logits`.
fn alternatives(
    logits: &[f32],
    log_sum: f64,
    scratch: &mut Scratch,
    ids: &mut [i32],
    logprobs: &mut [f32],
) {
    select::largest(logits, ids.len(), scratch);
    for (at, &key) in scratch.keys.iter().enumerate() {
        let id = select::id_of(key);
        ids[at] = id as i32;
        logprobs[at] = (f64::from(logits[id]) - log_sum) as f32;
    }
}

/// Sample one row. `logits` (one per vocabulary entry) are modified by mask, bias and penalties.
///
/// The first `num_logprobs` entries of `top_ids` and `top_logprobs` are filled.
///
/// # Safety
/// The machine has the level.
pub unsafe fn sample(
    level: Level,
    logits: &mut [f32],
    row: &RowContext<'_>,
    scratch: &mut Scratch,
    top_ids: &mut [i32],
    top_logprobs: &mut [f32],
) -> Sampled {
    let params = row.params;
    // SAFETY: the level is the caller's promise.
    let found = unsafe { select::run_maxima(level, logits, &mut scratch.maxima) };
    let Some(largest) = found else {
        return Sampled {
            token: None,
            logprob: f32::NAN,
        };
    };
    let mut log_sum = f64::NAN;
    if params.num_logprobs >= 0 {
        // SAFETY: the level is the caller's promise.
        log_sum = unsafe { log_sum_exp(level, logits, largest) };
        let wanted = (params.num_logprobs as usize).min(MAX_TOP_LOGPROBS);
        let (ids, logprobs) = (&mut top_ids[..wanted], &mut top_logprobs[..wanted]);
        alternatives(logits, log_sum, scratch, ids, logprobs);
    }
    if let Some(mask) = row.mask {
        mask::apply(logits, mask);
    }
    // Raw logits are saved after the mask: those of forbidden tokens are never needed.
    let changed = penalties::apply(logits, row, scratch) || row.mask.is_some();
    // SAFETY: the level is the caller's promise.
    if changed && unsafe { select::run_maxima(level, logits, &mut scratch.maxima) }.is_none() {
        return Sampled {
            token: None,
            logprob: f32::NAN,
        };
    }
    let token = if params.temperature == 0.0 {
        select::argmax(logits, &scratch.maxima)
    } else {
        // SAFETY: the level is the caller's promise.
        unsafe { gumbel::sample_gumbel_max(level, logits, row, scratch) }
    };
    let logprob = if params.num_logprobs >= 0 {
        (f64::from(scratch.raw_logit(token, logits)) - log_sum) as f32
    } else {
        f32::NAN
    };
    Sampled {
        token: Some(token as i32),
        logprob,
    }
}

#[cfg(test)]
mod tests;
