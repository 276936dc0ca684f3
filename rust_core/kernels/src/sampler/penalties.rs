//! Logit bias and the repetition, presence, frequency and DRY penalties.

use super::{RowContext, Scratch, dry};

/// Apply bias and penalties in place; returns whether any logit changed. Linear in the row's tokens if it has a penalty.
/// `scratch.raw` receives the original values of changed logits.
pub(super) fn apply(logits: &mut [f32], row: &RowContext<'_>, scratch: &mut Scratch) -> bool {
    let params = row.params;
    scratch.raw.clear();
    for (&id, &bias) in row.bias_ids.iter().zip(row.bias_values) {
        scratch.raw.push((id as u32, logits[id as usize]));
        logits[id as usize] += bias;
    }
    if params.repetition_penalty != 1.0 {
        repetition(logits, row, scratch);
    }
    if params.presence_penalty != 0.0 || params.frequency_penalty != 0.0 {
        occurrences(logits, row, scratch);
    }
    if params.dry_multiplier != 0.0 {
        let tokens = dry::penalties(row.tokens, params.dry(), row.breakers, &mut scratch.dry);
        for (token, penalty) in tokens {
            scratch.raw.push((token as u32, logits[token]));
            logits[token] -= penalty;
        }
    }
    !scratch.raw.is_empty()
}

fn repetition(logits: &mut [f32], row: &RowContext<'_>, scratch: &mut Scratch) {
    let penalty = row.params.repetition_penalty;
    for &token in row.tokens {
        let token = token as usize;
        if std::mem::replace(&mut scratch.seen[token], true) {
            continue;
        }
        let logit = logits[token];
        scratch.raw.push((token as u32, logit));
        logits[token] = if logit > 0.0 {
            logit / penalty
        } else {
            logit * penalty
        };
    }
    for &token in row.tokens {
        scratch.seen[token as usize] = false;
    }
}

fn occurrences(logits: &mut [f32], row: &RowContext<'_>, scratch: &mut Scratch) {
    let output = &row.tokens[row.penalty_start.min(row.tokens.len())..];
    for &token in output {
        scratch.counts[token as usize] += 1;
    }
    for &token in output {
        let token = token as usize;
        let count = std::mem::take(&mut scratch.counts[token]);
        if count > 0 {
            scratch.raw.push((token as u32, logits[token]));
            logits[token] -= row.params.presence_penalty;
            logits[token] -= row.params.frequency_penalty * count as f32;
        }
    }
}
