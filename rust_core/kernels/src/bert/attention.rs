//! Bidirectional attention within one text.
//!
//! Scores are computed from floats or, in int8 encoders, from bytes; everything else is f32.

use super::int8::{ByteDots, ByteRows, Dots, Operands, QUAD};
use crate::pack::layout::PANEL_COLUMNS;
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
    /// Keys as codes in panels of 16 tokens, as an int8 matrix has its weights.
    codes: Vec<[[u8; QUAD]; PANEL_COLUMNS]>,
    /// A row of ones, as wide as a head.
    ones: Vec<u8>,
    /// By key, for [`ByteKeys`].
    steps: Vec<f32>,
    sums: Vec<f32>,
    /// `[queries of a block, padded tokens]`
    scores: Vec<f32>,
}

/// Queries of a block where the level has the registers: a loaded key or value is used for all of them.
const WIDE_QUERIES: usize = 8;

/// Queries of a block otherwise.
const NARROW_QUERIES: usize = 2;

/// Vectors of keys, or of a value's dimensions, that a block multiplies at once.
const VECTORS: usize = 2;

/// Inverse of the square root of a head's width, for powers of two instead of e.
fn score_scale(head_dim: usize) -> f32 {
    std::f32::consts::LOG2_E / (head_dim as f32).sqrt()
}

/// One head of a text.
#[derive(Clone, Copy)]
struct Head<K> {
    text: Text,
    /// Index of the head's first value in a token's row.
    offset: usize,
    /// Tokens with padding, a multiple of `VECTORS * LANES`.
    padded: usize,
    keys: K,
    /// `[queries of a block, padded]`
    scores: *mut f32,
}

/// A head's keys, from which scores are computed.
trait Keys: Copy {
    /// Scores of queries `first..first + Q` of `head`, scaled.
    ///
    /// # Safety
    /// The queries exist; the level's instructions are enabled.
    unsafe fn score<L: ByteDots, const Q: usize>(head: Head<Self>, first: usize);
}

/// Keys of floats: `[head_dim, padded]`.
#[derive(Clone, Copy)]
struct FloatKeys(*const f32);

impl Keys for FloatKeys {
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over arrays of registers put them into memory"
    )]
    unsafe fn score<L: ByteDots, const Q: usize>(head: Head<Self>, first: usize) {
        let scale = score_scale(head.text.head_dim);
        let (width, padded) = (head.text.width, head.padded);
        // SAFETY: the caller's promise; whole vectors of the padded scratch.
        unsafe {
            let queries = head.text.query.add(first * width + head.offset);
            for block in (0..padded).step_by(VECTORS * LANES) {
                let mut sums = [[L::splat(0.0); VECTORS]; Q];
                for d in 0..head.text.head_dim {
                    let mut keys = [L::splat(0.0); VECTORS];
                    for part in 0..VECTORS {
                        keys[part] = L::load(head.keys.0.add(d * padded + block + part * LANES));
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
                        let to = head.scores.add(query * padded + block + part * LANES);
                        sums[query][part].mul(L::splat(scale)).store(to);
                    }
                }
            }
        }
    }
}

/// Queries and keys of bytes.
#[derive(Clone, Copy)]
struct ByteKeys<'a> {
    /// All rows of the group, of which the text's begin at `row`.
    queries: &'a ByteRows,
    row: usize,
    /// Panels of 16 keys, zeros beyond the text.
    codes: *const [[u8; QUAD]; PANEL_COLUMNS],
    /// `[padded]`: value of a unit of a key's codes, scaled as the scores are.
    steps: *const f32,
    /// `[padded]`: sum of a key's values, scaled so, too.
    sums: *const f32,
}

/// Bytes of a quad of a panel.
const QUAD_BYTES: usize = size_of::<[[u8; QUAD]; PANEL_COLUMNS]>();

impl ByteKeys<'_> {
    /// A block of panels with rows from `rows` on.
    fn operands(self, rows: *const u8, first_panel: usize, quads: usize) -> Operands {
        Operands {
            rows,
            row_stride: self.queries.stride(),
            panels: self.codes.wrapping_add(first_panel * quads).cast(),
            panel_stride: quads * QUAD_BYTES,
            quads,
        }
    }
}

impl Keys for ByteKeys<'_> {
    #[inline(always)]
    unsafe fn score<L: ByteDots, const Q: usize>(head: Head<Self>, first: usize) {
        let (keys, padded) = (head.keys, head.padded);
        let row = keys.row + first;
        let rows = keys
            .queries
            .codes()
            .wrapping_add(row * keys.queries.stride() + head.offset);
        let quads = head.text.head_dim / QUAD;
        let scales = &keys.queries.scales()[row..row + Q];
        let mut dots = [[[0; PANEL_COLUMNS]; VECTORS]; Q];
        // SAFETY: the caller's promise; whole panels and vectors of the padded scratch.
        unsafe {
            for block in (0..padded).step_by(VECTORS * LANES) {
                let operands = keys.operands(rows, block / LANES, quads);
                L::dots::<Q, VECTORS>(operands, dots.as_mut_ptr().cast::<Dots>());
                for part in 0..VECTORS {
                    let at = block + part * LANES;
                    let (step, sum) = (L::load(keys.steps.add(at)), L::load(keys.sums.add(at)));
                    for (query, scale) in scales.iter().enumerate() {
                        let dots = L::load_i32_plus(dots[query][part].as_ptr(), 0);
                        let score = dots
                            .mul(L::splat(scale.step))
                            .mul_add(step, sum.mul(L::splat(scale.low)));
                        score.store(head.scores.add(query * padded + at));
                    }
                }
            }
        }
    }
}

impl<K: Keys> Head<K> {
    /// Replace a query's scores by their powers of two and return the inverse of their sum.
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
                let share = L::load(scores.add(block)).sub(largest).exp2();
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
    unsafe fn attend<L: ByteDots, const Q: usize>(self, first: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            K::score::<L, Q>(self, first);
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

impl Text {
    /// Tokens with padding to whole blocks of keys.
    fn padded(&self) -> usize {
        self.tokens.next_multiple_of(VECTORS * LANES)
    }

    /// All queries of a head, in blocks. Every value is computed in the same order for any division.
    ///
    /// # Safety
    /// As [`attend`], with the level's instructions enabled; the keys are the head's.
    #[inline(always)]
    unsafe fn attend<L: ByteDots, K: Keys>(self, head: usize, keys: K, scores: &mut Vec<f32>) {
        let block = if L::WIDE {
            WIDE_QUERIES
        } else {
            NARROW_QUERIES
        };
        // Overwritten before it is read.
        scores.resize(block * self.padded(), 0.0);
        let head = Head {
            text: self,
            offset: head * self.head_dim,
            padded: self.padded(),
            keys,
            scores: scores.as_mut_ptr(),
        };
        let mut first = 0;
        // SAFETY: queries of the text; the rest is the caller's promise.
        unsafe {
            while first + block <= self.tokens {
                if L::WIDE {
                    head.attend::<L, WIDE_QUERIES>(first);
                } else {
                    head.attend::<L, NARROW_QUERIES>(first);
                }
                first += block;
            }
            if L::WIDE && first + WIDE_QUERIES / 2 <= self.tokens {
                head.attend::<L, { WIDE_QUERIES / 2 }>(first);
                first += WIDE_QUERIES / 2;
            }
            for first in first..self.tokens {
                head.attend::<L, 1>(first);
            }
        }
    }
}

/// # Safety
/// As [`attend`], with the level's instructions enabled.
#[inline(always)]
unsafe fn attend_body<L: ByteDots>(text: Text, head: usize, scratch: &mut HeadScratch) {
    let (dim, padded) = (text.head_dim, text.padded());
    // What is beyond the text is zero; the rest is overwritten here.
    scratch.keys.clear();
    scratch.keys.resize(dim * padded, 0.0);
    let keys = scratch.keys.as_mut_ptr();
    // SAFETY: tokens and dimensions stay inside the text's arrays by the caller's promise, inside the scratch by its size
    // above; the instructions are enabled by `by_level`.
    unsafe {
        for token in 0..text.tokens {
            let key = text.key.add(token * text.width + head * dim);
            for d in 0..dim {
                *keys.add(d * padded + token) = *key.add(d);
            }
        }
        text.attend::<L, _>(head, FloatKeys(keys), &mut scratch.scores);
    }
}

/// # Safety
/// As [`attend_bytes`], with the level's instructions enabled.
#[inline(always)]
unsafe fn attend_bytes_body<L: ByteDots>(
    text: Text,
    head: usize,
    [queries, keys]: [&ByteRows; 2],
    row: usize,
    scratch: &mut HeadScratch,
) {
    let (quads, padded) = (text.head_dim / QUAD, text.padded());
    let panels = padded / PANEL_COLUMNS;
    scratch.codes.clear();
    scratch
        .codes
        .resize(panels * quads, [[0; QUAD]; PANEL_COLUMNS]);
    scratch.steps.clear();
    scratch.steps.resize(padded, 0.0);
    scratch.sums.resize(padded, 0.0);
    let scale = score_scale(text.head_dim);
    for token in 0..text.tokens {
        let (panel, column) = (token / PANEL_COLUMNS, token % PANEL_COLUMNS);
        let codes = keys.signed_codes(
            row + token,
            head * text.head_dim..(head + 1) * text.head_dim,
        );
        for (quad, codes) in codes.enumerate() {
            scratch.codes[panel * quads + quad][column] = codes;
        }
        scratch.steps[token] = scale * keys.scales()[row + token].step;
    }
    let byte_keys = ByteKeys {
        queries,
        row,
        codes: scratch.codes.as_ptr(),
        steps: scratch.steps.as_ptr(),
        sums: scratch.sums.as_ptr(),
    };
    scratch.ones.resize(text.head_dim, 1);
    let mut sums = [[0; PANEL_COLUMNS]; VECTORS];
    // SAFETY: whole blocks of panels; a row of ones as long as a head; the rest is the caller's promise.
    unsafe {
        for block in (0..padded).step_by(VECTORS * LANES) {
            let operands = byte_keys.operands(scratch.ones.as_ptr(), block / LANES, quads);
            L::dots::<1, VECTORS>(operands, sums.as_mut_ptr());
            for (at, sum) in (block..).zip(sums.as_flattened()) {
                scratch.sums[at] = scratch.steps[at] * *sum as f32;
            }
        }
        text.attend::<L, _>(head, byte_keys, &mut scratch.scores);
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

by_level! {
    /// Attention with queries and keys as bytes, both of which have the text's tokens from row `row` on. The text's `query` and
    /// `key` are not read.
    ///
    /// # Safety
    /// As [`attend`]; the keys are quantised symmetrically; both have rows of the text's width.
    pub(super) unsafe fn attend_bytes(text: Text, head: usize, rows: [&ByteRows; 2], row: usize, scratch: &mut HeadScratch) = attend_bytes_body with AvxVnni;
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
