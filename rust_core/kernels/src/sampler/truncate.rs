//! Top-k, top-p and min-p: the candidate tokens of a row.

use super::{RowContext, Scratch, select, sum_exp};
use crate::dispatch::Level;

/// Tokens that may be sampled.
pub(super) enum Candidates {
    /// The tokens in `scratch.keys`.
    Keys,
    /// All tokens.
    All,
}

/// Apply the row's truncations. `scratch.maxima` must be those of `logits`.
///
/// # Safety
/// The machine has the level.
pub(super) unsafe fn truncate(
    level: Level,
    logits: &[f32],
    row: &RowContext<'_>,
    scratch: &mut Scratch,
) -> Candidates {
    let params = row.params;
    let temperature = params.temperature;
    let largest = logits[select::argmax(logits, &scratch.maxima)];
    let share =
        |logit: f32| (f64::from(logit / temperature) - f64::from(largest / temperature)).exp();
    let top_k = usize::try_from(params.top_k).unwrap_or(0);
    let by_rank = top_k > 0 && top_k < logits.len();
    if by_rank {
        select::largest(logits, top_k, scratch);
        if params.top_p < 1.0 {
            let total = scratch
                .keys
                .iter()
                .map(|&key| share(logits[select::id_of(key)]))
                .sum();
            cut_at_top_p(
                logits,
                f64::from(params.top_p),
                total,
                share,
                &mut scratch.keys,
            );
        }
    } else if params.top_p < 1.0 {
        // SAFETY: the level is the caller's promise.
        let total = unsafe { sum_exp(level, logits, largest, 1.0 / temperature) };
        most_probable(logits, row, largest, total, share, scratch);
    } else if params.min_p > 0.0 {
        // Slightly below the bound; the exact test follows.
        let limit = largest + (params.min_p.ln() - 1e-3) * temperature * 1.001;
        select::at_least(
            logits,
            limit.min(largest),
            &scratch.maxima,
            &mut scratch.keys,
        );
    } else {
        return Candidates::All;
    }
    if params.min_p > 0.0 {
        let min_p = f64::from(params.min_p);
        scratch.keys.retain(|&key| {
            let logit = logits[select::id_of(key)];
            logit == largest || share(logit) >= min_p
        });
    }
    Candidates::Keys
}

/// Truncate sorted keys to the smallest prefix whose share of `total` reaches `top_p`; returns false if none does.
fn cut_at_top_p(
    logits: &[f32],
    top_p: f64,
    total: f64,
    share: impl Fn(f32) -> f64,
    keys: &mut Vec<u64>,
) -> bool {
    let mut reached = 0.0;
    for at in 0..keys.len() {
        reached += share(logits[select::id_of(keys[at])]) / total;
        if reached >= top_p {
            keys.truncate(at + 1);
            return true;
        }
    }
    false
}

/// Fill `scratch.keys` with the smallest prefix, most probable first, that reaches `top_p`. Collects logits above a threshold,
/// lowers the threshold until the collected probability suffices, and sorts only those.
fn most_probable(
    logits: &[f32],
    row: &RowContext<'_>,
    largest: f32,
    total: f64,
    share: impl Fn(f32) -> f64 + Copy,
    scratch: &mut Scratch,
) {
    let top_p = f64::from(row.params.top_p);
    let mut depth = 2.0;
    loop {
        let limit = if depth < 100.0 {
            largest - depth * row.params.temperature
        } else {
            f32::NEG_INFINITY
        };
        select::at_least(logits, limit, &scratch.maxima, &mut scratch.keys);
        let last = limit == f32::NEG_INFINITY;
        let collected: f64 = scratch
            .keys
            .iter()
            .map(|&key| share(logits[select::id_of(key)]))
            .sum();
        if last || collected >= top_p * total {
            scratch.keys.sort_unstable_by(|a, b| b.cmp(a));
            if cut_at_top_p(logits, top_p, total, share, &mut scratch.keys) || last {
                return;
            }
        }
        depth *= 1.7;
    }
}
