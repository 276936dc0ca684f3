//! Attention over int8 keys and values with int8 dot products.
//!
//! Queries are quantized to one byte and probabilities to two ([`super::quantized_rows`]); integer sums are exact. A dot
//! product instruction takes four dimensions of a key, or four positions of a value, at once. Scores and values are the
//! same GEMM: quantized rows times registers of codes.

use super::kernel::{Chunk, Element};
use super::prefetch::Prefetcher;
use super::quantized_rows::QuantizedRows;
use super::softmax::rescaled_sum;
use super::state::{Aligned, Scratch};
use super::task::Task;
use super::visible::Visible;
use super::{CHUNK, MAX_ROWS};
use crate::kv_cache::{QUAD, ZERO_CODE};
use crate::simd::{
    Int8Dot, LANES, MAX_INT8, MAX_INT8_PAIR, REGISTER_CODES, hadamard, hadamard_size, max_abs,
    symmetric_scale, symmetric_scale_of,
};

/// Quads of a tile's tokens.
const QUADS: usize = LANES / QUAD;

/// The integer of probability 1 times the largest scale: a little less than [`MAX_INT8_PAIR`], because products are
/// rounded.
const MAX_PROB: f32 = MAX_INT8_PAIR - 1.0;

pub(super) struct Int8;

/// Dot products of rows `first_row..first_row + ROWS` of `operands`, `width` integers apart, with codes of `quads` times
/// four inputs; `codes(quad, vector)` is the address of the codes. Prefetches `lines` lines for every quad.
///
/// # Safety
/// As many integers and codes exist; the level's instructions are enabled.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
unsafe fn dots<
    L: Int8Dot,
    const ROWS: usize,
    const VECTORS: usize,
    const BYTES: usize,
    const N: usize,
>(
    operands: &QuantizedRows<BYTES, N>,
    first_row: usize,
    width: usize,
    quads: usize,
    (prefetcher, lines): (&mut Prefetcher, usize),
    codes: impl Fn(usize, usize) -> *const u8,
) -> [[L; VECTORS]; ROWS] {
    let bytes = operands.from(first_row * width);
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[[L::zero_dots(); VECTORS]; BYTES]; ROWS];
        for quad in 0..quads {
            prefetcher.next(lines);
            let mut loaded = [L::load_codes(codes(quad, 0)); VECTORS];
            for vector in 1..VECTORS {
                loaded[vector] = L::load_codes(codes(quad, vector));
            }
            for row in 0..ROWS {
                let at = row * width + QUAD * quad;
                for byte in 0..BYTES {
                    let four = L::splat_quad(bytes[byte].add(at));
                    for vector in 0..VECTORS {
                        let sum = &mut sums[row][byte][vector];
                        *sum = L::accumulate_dots(*sum, loaded[vector], four);
                    }
                }
            }
        }
        let mut products = [[L::splat(0.0); VECTORS]; ROWS];
        for row in 0..ROWS {
            let offset = operands.sums[first_row + row].wrapping_mul(i32::from(ZERO_CODE));
            for vector in 0..VECTORS {
                let low = sums[row][BYTES - 1][vector];
                let high = match BYTES {
                    1 => L::zero_dots(),
                    _ => sums[row][0][vector],
                };
                products[row][vector] = L::combine_dots(high, low, offset);
            }
        }
        products
    }
}

/// Scores of `ROWS` rows against `COUNT` key tiles.
///
/// # Safety
/// As [`Element::scores`].
#[inline(always)]
unsafe fn scores<L: Int8Dot, const ROWS: usize, const COUNT: usize>(
    chunk: &Chunk,
    first_tile: usize,
    row: usize,
    prefetcher: (&mut Prefetcher, usize),
    scratch: &mut Scratch,
) {
    let tiles = &chunk.tiles.tiles[first_tile..first_tile + COUNT];
    let (queries, stride) = (&scratch.queries, chunk.value_stride);
    let quads = stride / QUAD;
    // SAFETY: the caller's promise.
    unsafe {
        let codes = |quad, tile: usize| tiles[tile].add(REGISTER_CODES * quad);
        let sums = dots::<L, ROWS, COUNT, _, _>(queries, row, stride, quads, prefetcher, codes);
        for (at, sums) in sums.iter().enumerate() {
            let query_scale = L::splat(queries.scales[row + at]);
            let out = scratch.probs.0[row + at].as_mut_ptr();
            for (tile, sum) in sums.iter().enumerate() {
                let scales = L::load(tiles[tile].add(chunk.layout.key_scales).cast());
                let score = sum.mul(query_scale).mul(scales);
                score.store(out.add((first_tile + tile) * LANES));
            }
        }
    }
}

/// Add `ROWS` rows' weighted values, for `DIMS` times 16 dimensions from `dim` on.
///
/// # Safety
/// As [`Element::add_values`].
#[inline(always)]
unsafe fn add_values<L: Int8Dot, const ROWS: usize, const DIMS: usize>(
    chunk: &Chunk,
    dim: usize,
    row: usize,
    prefetcher: (&mut Prefetcher, usize),
    scratch: &mut Scratch,
) {
    let (probs, stride) = (&scratch.value_probs, chunk.value_stride);
    let quads = chunk.tiles.count() * QUADS;
    // SAFETY: the caller's promise.
    unsafe {
        let codes = |quad: usize, vector| {
            let first = quad % QUADS * stride + dim + vector * LANES;
            chunk.tiles.tiles[quad / QUADS].add(chunk.layout.values + QUAD * first)
        };
        let sums = dots::<L, ROWS, DIMS, _, _>(probs, row, CHUNK, quads, prefetcher, codes);
        for (at, sums) in sums.iter().enumerate() {
            let row = row + at;
            let before = L::splat(scratch.factors.before[row]);
            let factor = L::splat(scratch.factors.chunk[row] * probs.scales[row]);
            let acc = scratch.current.acc_from(row)[dim..].as_mut_ptr();
            for (vector, sum) in sums.iter().enumerate() {
                let acc = acc.add(vector * LANES);
                rescaled_sum((*sum, factor), (L::load(acc), before)).store(acc);
            }
        }
    }
}

/// Call `$body` for as many of the next rows as the level's registers hold; evaluates to their number. Up to six with one
/// byte plane each (`one`), up to three with two (`two`). More than one vector only on levels that are `WIDE`.
macro_rules! next_rows {
    ($level:ty, $left:expr, one $body:ident::<$count:literal>($($arg:expr),*)) => {
        match $left {
            6.. if <$level>::SIX_DOTS => { $body::<$level, 6, $count>($($arg),*); 6 }
            left => next_rows!($level, left, two $body::<$count>($($arg),*)),
        }
    };
    ($level:ty, $left:expr, two $body:ident::<$count:literal>($($arg:expr),*)) => {
        match $left {
            3.. if <$level>::SIX_DOTS => { $body::<$level, 3, $count>($($arg),*); 3 }
            2 if <$level>::SIX_DOTS => { $body::<$level, 2, $count>($($arg),*); 2 }
            _ => { $body::<$level, 1, $count>($($arg),*); 1 }
        }
    };
}

/// Factors that quantize a chunk's probabilities together with their values' scales.
struct ValueScales {
    /// The visible positions of the chunk.
    visible: Visible,
    /// The largest value scale among them; NaN if one is NaN.
    largest: f32,
    /// The values' scales, scaled so that the largest is [`MAX_PROB`]; zero for positions that are not visible.
    factors: Aligned<[[f32; LANES]; CHUNK / LANES]>,
    /// The float that the integer 1 stands for.
    scale: f32,
}

impl ValueScales {
    /// # Safety
    /// The chunk is valid; the level's instructions are enabled.
    #[inline(always)]
    unsafe fn new<L: Int8Dot>(chunk: &Chunk, visible: Visible) -> Self {
        let mut scales = Self {
            visible,
            largest: 0.0,
            factors: Aligned([[0.0; LANES]; CHUNK / LANES]),
            scale: 0.0,
        };
        // SAFETY: the caller's promise; sixteen factors.
        unsafe {
            scales.load::<L>(chunk, 1.0);
            scales.largest = max_abs::<L>(scales.factors.0.as_flattened());
            let (scale, inverse) = symmetric_scale(scales.largest, MAX_PROB);
            scales.scale = scale;
            for factors in &mut scales.factors.0[..chunk.tiles.count()] {
                let scaled = L::load(factors.as_ptr()).mul(L::splat(inverse));
                scaled.store(factors.as_mut_ptr());
            }
        }
        scales
    }

    /// Change to a token that sees `visible`, usually one position more.
    ///
    /// # Safety
    /// As [`ValueScales::new`], of the same chunk.
    #[inline(always)]
    unsafe fn update<L: Int8Dot>(&mut self, chunk: &Chunk, visible: Visible) {
        let seen = std::mem::replace(&mut self.visible, visible);
        // SAFETY: the caller's promise; positions are the chunk's.
        unsafe {
            if visible.first != seen.first || visible.end < seen.end {
                *self = Self::new::<L>(chunk, visible);
                return;
            }
            for position in seen.end..visible.end {
                let scale = (*Self::of_tile(chunk, position / LANES))[position % LANES].abs();
                // A NaN is kept.
                self.largest = if scale > self.largest || scale.is_nan() {
                    scale
                } else {
                    self.largest
                };
            }
            let (scale, inverse) = symmetric_scale(self.largest, MAX_PROB);
            self.scale = scale;
            self.load::<L>(chunk, inverse);
        }
    }

    /// The scales of a tile's values.
    fn of_tile(chunk: &Chunk, tile: usize) -> *const [f32; LANES] {
        let scales = chunk.tiles.tiles[tile].wrapping_add(chunk.layout.value_scales);
        scales.cast()
    }

    /// Set the factors to the scales of the visible positions, times `inverse`.
    ///
    /// # Safety
    /// As [`ValueScales::new`].
    #[inline(always)]
    unsafe fn load<L: Int8Dot>(&mut self, chunk: &Chunk, inverse: f32) {
        for (tile, factors) in self.factors.0[..chunk.tiles.count()].iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                let scales = L::load(Self::of_tile(chunk, tile).cast()).mul(L::splat(inverse));
                let scales = self.visible.select(tile, scales, L::splat(0.0));
                scales.store(factors.as_mut_ptr());
            }
        }
    }
}

/// Quantize the probabilities of rows `from..to`, times their values' scales.
///
/// No probability is larger than 1, so the largest scale that a token sees bounds its products; a token's heads share it,
/// and usually neighbouring tokens too.
///
/// # Safety
/// As [`Element::add_values`].
#[inline(always)]
unsafe fn quantize_probs<L: Int8Dot>(
    task: &Task<'_>,
    chunk: &Chunk,
    (from, to): (usize, usize),
    scratch: &mut Scratch,
) {
    let tiles = chunk.tiles.count();
    let first = task.visible(from / task.heads, chunk.start);
    // SAFETY: the caller's promise.
    let mut scales = unsafe { ValueScales::new::<L>(chunk, first) };
    for token in from / task.heads..to / task.heads {
        let visible = task.visible(token, chunk.start);
        if visible != scales.visible {
            // SAFETY: the caller's promise.
            unsafe { scales.update::<L>(chunk, visible) };
        }
        for row in token * task.heads..(token + 1) * task.heads {
            let probs = &scratch.probs.0[row].as_chunks().0[..tiles];
            let quantized = &mut scratch.value_probs;
            quantized.scales[row] = scales.scale;
            // SAFETY: probabilities are at most 1; the rest is the caller's promise.
            unsafe { quantized.set::<L>(row, row * CHUNK, probs, &scales.factors.0) };
        }
    }
}

impl Element for Int8 {
    const PREFETCH_STEP: usize = QUAD;

    #[inline(always)]
    unsafe fn prepare_queries<L: Int8Dot>(rows: usize, stride: usize, scratch: &mut Scratch) {
        let size = hadamard_size(stride) as f32;
        let (queries, mut inverses) = (&mut scratch.queries, [0.0; MAX_ROWS]);
        // Each operation for all rows before the next: the operations of one row depend on one another.
        for query in scratch.q.0[..rows * stride].chunks_exact_mut(stride) {
            // SAFETY: the same contract.
            unsafe { hadamard::<L>(query) }; // keys are rotated in the same way
        }
        for (row, query) in scratch.q.0[..rows * stride]
            .chunks_exact(stride)
            .enumerate()
        {
            // SAFETY: the same contract.
            let (scale, inverse) = unsafe { symmetric_scale_of::<L>(query, MAX_INT8) };
            (queries.scales[row], inverses[row]) = (scale / size, inverse);
        }
        for (row, query) in scratch.q.0[..rows * stride]
            .chunks_exact(stride)
            .enumerate()
        {
            let query = query.as_chunks().0;
            // SAFETY: the same contract.
            unsafe { queries.set::<L>(row, row * stride, query, inverses[row]) };
        }
    }

    #[inline(always)]
    unsafe fn scores<L: Int8Dot>(
        chunk: &Chunk,
        (from, to): (usize, usize),
        prefetcher: &mut Prefetcher,
        lines: usize,
        scratch: &mut Scratch,
    ) {
        let tiles = chunk.tiles.count();
        // SAFETY: the same contract, block of rows by block of rows.
        unsafe {
            let mut row = from;
            while row < to {
                let (left, lines) = (to - row, if row == from { lines } else { 0 });
                let mut step = 0;
                let mut tile = 0;
                while tile < tiles {
                    if L::WIDE && tiles - tile > 3 {
                        step = next_rows!(
                            L,
                            left,
                            one scores::<4>(chunk, tile, row, (prefetcher, lines), scratch)
                        );
                        tile += 4;
                    } else if L::WIDE && tiles - tile == 3 {
                        step = next_rows!(
                            L,
                            left,
                            one scores::<3>(chunk, tile, row, (prefetcher, lines), scratch)
                        );
                        tile += 3;
                    } else if L::WIDE && tiles - tile == 2 {
                        step = next_rows!(
                            L,
                            left,
                            one scores::<2>(chunk, tile, row, (prefetcher, lines), scratch)
                        );
                        tile += 2;
                    } else {
                        step = next_rows!(
                            L,
                            left,
                            one scores::<1>(chunk, tile, row, (prefetcher, lines), scratch)
                        );
                        tile += 1;
                    }
                }
                row += step;
            }
        }
    }

    #[inline(always)]
    unsafe fn add_values<L: Int8Dot>(
        task: &Task<'_>,
        chunk: &Chunk,
        (from, to): (usize, usize),
        prefetcher: &mut Prefetcher,
        lines: usize,
        scratch: &mut Scratch,
    ) {
        // SAFETY: the same contract, block of rows by block of rows.
        unsafe {
            quantize_probs::<L>(task, chunk, (from, to), scratch);
            let mut row = from;
            while row < to {
                let (left, lines) = (to - row, if row == from { lines } else { 0 });
                let mut step = 0;
                let mut dim = 0;
                while dim < chunk.value_stride {
                    let vectors = (chunk.value_stride - dim) / LANES;
                    if L::WIDE && vectors >= 4 {
                        step = next_rows!(
                            L,
                            left,
                            two add_values::<4>(chunk, dim, row, (prefetcher, lines), scratch)
                        );
                        dim += 4 * LANES;
                    } else if L::WIDE && vectors >= 2 {
                        step = next_rows!(
                            L,
                            left,
                            two add_values::<2>(chunk, dim, row, (prefetcher, lines), scratch)
                        );
                        dim += 2 * LANES;
                    } else {
                        step = next_rows!(
                            L,
                            left,
                            two add_values::<1>(chunk, dim, row, (prefetcher, lines), scratch)
                        );
                        dim += LANES;
                    }
                }
                row += step;
            }
        }
    }
}
