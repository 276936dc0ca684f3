//! Token masks: which tokens a grammar allows next.
//!
//! Bit `id % 32` of word `id / 32` is 1 where token `id` is allowed. Costs a look at every word and a
//! store for every forbidden token; rows without a mask never come here.

/// Ids of one word.
const WORD: usize = 32;

/// Give every forbidden token the logit -inf.
pub(super) fn apply(logits: &mut [f32], mask: &[u32]) {
    for (run, &word) in logits.chunks_mut(WORD).zip(mask) {
        match word {
            0 => run.fill(f32::NEG_INFINITY),
            u32::MAX => {}
            _ => {
                for (bit, logit) in run.iter_mut().enumerate() {
                    if word >> bit & 1 == 0 {
                        *logit = f32::NEG_INFINITY;
                    }
                }
            }
        }
    }
}
