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
    /// `[head_dim, padded tokens]`: transposed keys, so that scores need no horizontal sums.
    keys: Vec<f32>,
    /// `[queries of a block, padded tokens]`
    scores: Vec<f32>,
}

/// Queries of a block where the level has the registers: a loaded key or value is used for all of them.
const WIDE_QUERIES: usize = 8;

/// Queries of a block otherwise.
const NARROW_QUERIES: usize = 2;

/// Vectors of keys, or of a value's dimensions, that a block multiplies at once.
const VECTORS: usize = 2;

/// One head of a text with its transposed keys.
#[derive(Clone, Copy)]
struct Head {
    text: Text,
    /// Index of the head's first value in a token's row.
    offset: usize,
    /// Tokens with padding, a multiple of `VECTORS * LANES`.
    padded: usize,
    /// `[head_dim, padded]`
    keys: *const f32,
    /// `[queries of a block, padded]`
    scores: *mut f32,
}

impl Head {
    /// Scores of queries `first..first + Q`, scaled.
    ///
    /// # Safety
    /// The queries exist; the level's instructions are enabled.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over arrays of registers put them into memory"
    )]
    unsafe fn score<L: Lanes, const Q: usize>(self, first: usize) {
        let scale = 1.0 / (self.text.head_dim as f32).sqrt();
        let width = self.text.width;
        // SAFETY: the caller's promise; whole vectors of the padded scratch.
        unsafe {
            let queries = self.text.query.add(first * width + self.offset);
            for block in (0..self.padded).step_by(VECTORS * LANES) {
                let mut sums = [[L::splat(0.0); VECTORS]; Q];
                for d in 0..self.text.head_dim {
                    let mut keys = [L::splat(0.0); VECTORS];
                    for part in 0..VECTORS {
                        keys[part] = L::load(self.keys.add(d * self.padded + block + part * LANES));
                    }
                    for query in 0..Q {
                        let value = L::splat(*queries.add(query * width + d));
                        for part in 0..VECTORS {
                            sums[query][part] = value.mul_add(keys[part], sums[query][part]);
                        }
                    }
                }
                for query in 0..Q {
                    for part in 0..VECTORS {
                        let to = self.scores.add(query * self.padded + block + part * LANES);
                        sums[query][part].mul(L::splat(scale)).store(to);
                    }
                }
            }
        }
    }

    /// Replace a query's scores by their exponentials and return the inverse of their sum.
    ///
    /// # Safety
    /// The scores are complete; the level's instructions are enabled.
    #[inline(always)]
    unsafe fn exponentiate<L: Lanes>(self, query: usize) -> L {
        // SAFETY: one query's scores, which only this worker uses.
        unsafe {
            let scores = self.scores.add(query * self.padded);
            for beyond in self.text.tokens..self.padded {
                *scores.add(beyond) = f32::NEG_INFINITY;
            }
            let mut largest = L::load(scores);
            for block in (LANES..self.padded).step_by(LANES) {
                largest = L::load(scores.add(block)).max(largest);
            }
            let largest = L::splat(largest.largest());
            let mut total = L::splat(0.0);
            for block in (0..self.padded).step_by(LANES) {
                let share = L::load(scores.add(block)).sub(largest).exp();
                total = total.add(share);
                share.store(scores.add(block));
            }
            L::splat(1.0 / total.sum())
        }
    }

    /// The outputs of queries `first..first + Q` for `V` vectors of dimensions from `part` on.
    ///
    /// # Safety
    /// The queries and dimensions exist; the exponentials are complete; the level's instructions are enabled.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over arrays of registers put them into memory"
    )]
    unsafe fn mix<L: Lanes, const Q: usize, const V: usize>(
        self,
        first: usize,
        part: usize,
        inverses: &[L; Q],
    ) {
        let width = self.text.width;
        // SAFETY: the caller's promise.
        unsafe {
            let values = self.text.value.add(self.offset + part);
            let mut sums = [[L::splat(0.0); V]; Q];
            for other in 0..self.text.tokens {
                let mut value = [L::splat(0.0); V];
                for vector in 0..V {
                    value[vector] = L::load(values.add(other * width + vector * LANES));
                }
                for query in 0..Q {
                    let share = L::splat(*self.scores.add(query * self.padded + other));
                    for vector in 0..V {
                        sums[query][vector] = share.mul_add(value[vector], sums[query][vector]);
                    }
                }
            }
            for query in 0..Q {
                let out = self
                    .text
                    .out
                    .add((first + query) * width + self.offset + part);
                for vector in 0..V {
                    sums[query][vector]
                        .mul(inverses[query])
                        .store(out.add(vector * LANES));
                }
            }
        }
    }

    /// # Safety
    /// As [`attend`] for queries `first..first + Q`, with the level's instructions enabled.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over arrays of registers put them into memory"
    )]
    unsafe fn attend<L: Lanes, const Q: usize>(self, first: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            self.score::<L, Q>(first);
            let mut inverses = [L::splat(0.0); Q];
            for query in 0..Q {
                inverses[query] = self.exponentiate::<L>(query);
            }
            let mut part = 0;
            while part + VECTORS * LANES <= self.text.head_dim {
                self.mix::<L, Q, VECTORS>(first, part, &inverses);
                part += VECTORS * LANES;
            }
            if part < self.text.head_dim {
                self.mix::<L, Q, 1>(first, part, &inverses);
            }
        }
    }
}

/// Every value is computed in the same order for any division into blocks.
///
/// # Safety
/// As [`attend`], with the level's instructions enabled.
#[inline(always)]
unsafe fn attend_body<L: Lanes>(text: Text, head: usize, scratch: &mut HeadScratch) {
    let (tokens, dim) = (text.tokens, text.head_dim);
    let padded = tokens.next_multiple_of(VECTORS * LANES);
    let block = if L::WIDE {
        WIDE_QUERIES
    } else {
        NARROW_QUERIES
    };
    // What is beyond the text is zero or overwritten; the rest is overwritten here.
    scratch.keys.clear();
    scratch.keys.resize(dim * padded, 0.0);
    scratch.scores.resize(block * padded, 0.0);
    let offset = head * dim;
    let keys = scratch.keys.as_mut_ptr();
    // SAFETY: tokens and dimensions stay inside the text's arrays by the caller's promise, inside the
    // scratch by its sizes above; the instructions are enabled by `by_level`.
    unsafe {
        for token in 0..tokens {
            let key = text.key.add(token * text.width + offset);
            for d in 0..dim {
                *keys.add(d * padded + token) = *key.add(d);
            }
        }
        let head = Head {
            text,
            offset,
            padded,
            keys,
            scores: scratch.scores.as_mut_ptr(),
        };
        let mut first = 0;
        while first + block <= tokens {
            if L::WIDE {
                head.attend::<L, WIDE_QUERIES>(first);
            } else {
                head.attend::<L, NARROW_QUERIES>(first);
            }
            first += block;
        }
        if L::WIDE && first + WIDE_QUERIES / 2 <= tokens {
            head.attend::<L, { WIDE_QUERIES / 2 }>(first);
            first += WIDE_QUERIES / 2;
        }
        for first in first..tokens {
            head.attend::<L, 1>(first);
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
