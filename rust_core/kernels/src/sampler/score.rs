//! Log-probabilities of given tokens: of a known next token (prompt logprobs), and of a list of candidates.

use super::{Scratch, alternatives, log_sum_exp, select};
use crate::dispatch::Level;
use crate::simd::{LANES, Lanes, by_level};

/// Logprob and rank of a given token. Alternatives are written to the slices given to [`score`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Log-softmax of the raw logits; NaN if they were unusable.
    pub logprob: f32,
    /// 1 for the most probable token; ties rank by lowest id. 0 if the logits were unusable.
    pub rank: i32,
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn count_above_body<L: Lanes>(logits: &[f32], bound: f32) -> f32 {
    let (chunks, tail) = logits.as_chunks::<LANES>();
    // SAFETY: sixteen elements each; the level's instructions are enabled by `by_level`. A lane counts to
    // 2^24 exactly, far beyond any vocabulary.
    let sum = unsafe {
        let (limit, one, zero) = (L::splat(bound), L::splat(1.0), L::splat(0.0));
        let mut above = zero;
        for chunk in chunks {
            above = above.add(limit.select_less(L::load(chunk.as_ptr()), one, zero));
        }
        above.sum()
    };
    sum + tail.iter().filter(|&&logit| logit > bound).count() as f32
}

by_level! {
    /// Number of logits above `bound`.
    ///
    /// # Safety
    /// The machine has the level.
    unsafe fn count_above(logits: &[f32], bound: f32) -> f32 = count_above_body;
}

/// Score token `target` by raw logits (one per vocabulary entry). Fills the slices of alternatives.
///
/// # Safety
/// The machine has the level.
pub unsafe fn score(
    level: Level,
    logits: &[f32],
    target: usize,
    scratch: &mut Scratch,
    top_ids: &mut [i32],
    top_logprobs: &mut [f32],
) -> Scored {
    // SAFETY: the level is the caller's promise.
    let Some(largest) = (unsafe { select::run_maxima(level, logits, &mut scratch.maxima) }) else {
        return Scored {
            logprob: f32::NAN,
            rank: 0,
        };
    };
    // SAFETY: the level is the caller's promise.
    let log_sum = unsafe { log_sum_exp(level, logits, largest) };
    alternatives(logits, log_sum, scratch, top_ids, top_logprobs);
    let own = logits[target];
    let ties = logits[..target]
        .iter()
        .filter(|&&logit| logit == own)
        .count();
    // SAFETY: the level is the caller's promise.
    let above = unsafe { count_above(level, logits, own) };
    Scored {
        logprob: (f64::from(own) - log_sum) as f32,
        rank: above as i32 + ties as i32 + 1,
    }
}

/// Write the log-softmax of the raw logits of each of `ids` to `logprobs`; NaN if the logits are unusable. Reads the
/// vocabulary twice.
///
/// # Safety
/// The machine has the level.
pub unsafe fn token_id_logprobs(
    level: Level,
    logits: &[f32],
    ids: &[i32],
    scratch: &mut Scratch,
    logprobs: &mut [f32],
) {
    // SAFETY: the level is the caller's promise.
    let Some(largest) = (unsafe { select::run_maxima(level, logits, &mut scratch.maxima) }) else {
        logprobs.fill(f32::NAN);
        return;
    };
    // SAFETY: the level is the caller's promise.
    let log_sum = unsafe { log_sum_exp(level, logits, largest) };
    for (logprob, &id) in logprobs.iter_mut().zip(ids) {
        *logprob = (f64::from(logits[id as usize]) - log_sum) as f32;
    }
}
