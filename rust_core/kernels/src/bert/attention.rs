//! Bidirectional attention within one text.

use crate::simd::{LANES, Lanes, by_level};

/// One text's queries, keys, values and attention output: all `[tokens, width]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    pub query: *const f32,
    pub key: *const f32,
    pub value: *const f32,
    pub out: *mut f32,
    pub tokens: usize,
    /// Floats between consecutive tokens: all heads.
    pub width: usize,
    pub head_dim: usize,
}

/// Scratch memory for one head.
#[derive(Debug, Default)]
pub(super) struct HeadScratch {
    /// `[head_dim, tokens]`: transposed keys, so that scores need no horizontal sums.
    keys: Vec<f32>,
    scores: Vec<f32>,
}

/// # Safety
/// As [`attend`], with the level's instructions enabled.
#[inline(always)]
unsafe fn attend_body<L: Lanes>(text: Text, head: usize, scratch: &mut HeadScratch) {
    let Text {
        tokens,
        width,
        head_dim: dim,
        ..
    } = text;
    let padded = tokens.next_multiple_of(LANES);
    scratch.keys.clear();
    scratch.keys.resize(dim * padded, 0.0);
    scratch.scores.clear();
    scratch.scores.resize(padded, 0.0);
    let (keys, scores) = (scratch.keys.as_mut_ptr(), scratch.scores.as_mut_ptr());
    let scale = 1.0 / (dim as f32).sqrt();
    let at = |token: usize| token * width + head * dim;
    // SAFETY: tokens and dimensions stay inside the text's arrays by the caller's promise, inside the
    // scratch by its sizes above; the instructions are enabled by `by_level`.
    unsafe {
        for token in 0..tokens {
            for d in 0..dim {
                *keys.add(d * padded + token) = *text.key.add(at(token) + d);
            }
        }
        for token in 0..tokens {
            let query = text.query.add(at(token));
            let mut largest = f32::NEG_INFINITY;
            for block in (0..padded).step_by(LANES) {
                let mut sum = L::splat(0.0);
                for d in 0..dim {
                    let key = L::load(keys.add(d * padded + block));
                    sum = L::splat(*query.add(d)).mul_add(key, sum);
                }
                sum.mul(L::splat(scale)).store(scores.add(block));
            }
            for score in &mut scratch.scores[tokens..] {
                *score = f32::NEG_INFINITY; // beyond the text
            }
            for &score in &scratch.scores {
                largest = if score > largest { score } else { largest };
            }
            let mut total = L::splat(0.0);
            for block in (0..padded).step_by(LANES) {
                let share = L::load(scores.add(block)).sub(L::splat(largest)).exp();
                total = total.add(share);
                share.store(scores.add(block));
            }
            let inverse = L::splat(1.0 / total.sum());
            for part in (0..dim).step_by(LANES) {
                let mut mixed = L::splat(0.0);
                for other in 0..tokens {
                    let value = L::load(text.value.add(at(other) + part));
                    mixed = L::splat(*scores.add(other)).mul_add(value, mixed);
                }
                mixed.mul(inverse).store(text.out.add(at(token) + part));
            }
        }
    }
}

by_level! {
    /// Attention of one head over a text.
    ///
    /// # Safety
    /// The machine has the level; the text's arrays have the documented shapes, `head_dim` is a multiple of
    /// [`LANES`], and no other thread accesses the head's part of `out`.
    pub(super) unsafe fn attend(text: Text, head: usize, scratch: &mut HeadScratch) = attend_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Level;
    use crate::guarded::{Guarded, on_both_sides};
    use crate::pack::tests::Random;

    #[test]
    fn attention_matches_double_precision() {
        on_both_sides(check);
    }

    fn check() {
        let mut random = Random(8);
        let (dim, heads) = (32, 2);
        let width = dim * heads;
        for tokens in [1, 2, 15, 16, 17, 70] {
            let mut array = || {
                let values = (0..tokens * width).map(|_| 3.0 * random.unit());
                Guarded::from(&values.collect::<Vec<f32>>()[..])
            };
            let (query, key, value) = (array(), array(), array());
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                let mut out = Guarded::filled(0.0, tokens * width);
                let text = Text {
                    query: query.as_ptr(),
                    key: key.as_ptr(),
                    value: value.as_ptr(),
                    out: out.as_mut_ptr(),
                    tokens,
                    width,
                    head_dim: dim,
                };
                let mut scratch = HeadScratch::default();
                for head in 0..heads {
                    // SAFETY: the level is available and the arrays are whole.
                    unsafe { attend(level, text, head, &mut scratch) };
                }
                for (token, head) in (0..tokens).flat_map(|t| (0..heads).map(move |h| (t, h))) {
                    let of = |array: &[f32], t: usize, d: usize| {
                        f64::from(array[t * width + head * dim + d])
                    };
                    let shares: Vec<f64> = (0..tokens)
                        .map(|other| {
                            let dot: f64 = (0..dim)
                                .map(|d| of(&query, token, d) * of(&key, other, d))
                                .sum();
                            (dot / (dim as f64).sqrt()).exp()
                        })
                        .collect();
                    let total: f64 = shares.iter().sum();
                    for d in 0..dim {
                        let exact: f64 = (0..tokens)
                            .map(|o| shares[o] * of(&value, o, d))
                            .sum::<f64>()
                            / total;
                        let got = of(&out, token, d);
                        assert!(
                            (got - exact).abs() < 2e-5,
                            "{level:?} {tokens}: {got} {exact}"
                        );
                    }
                }
            }
        }
    }
}
