//! Token masks: the tokens that a grammar allows next.
//!
//! Bit `id % 32` of word `id / 32` is 1 if token `id` is allowed. Cost: one read per word and one
//! store per forbidden token. Not called for rows without a mask.

/// Token ids per word.
const WORD: usize = 32;

/// Set the logit of every forbidden token to -inf.
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
