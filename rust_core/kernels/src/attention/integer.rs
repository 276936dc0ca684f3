//! Keys and values as int8, multiplied as integers.
//!
//! Queries become integers of one byte and weights of two ([`super::numbers`]), sums are exact, and a dot product takes four
//! dimensions of a key, or four positions of a value, at once.
//! Scores and values are the same product, some rows' numbers times some registers of codes.

use super::fetch::Fetch;
use super::kernel::{Chunk, Element};
use super::numbers::Numbers;
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

/// What a weight of one becomes beside the largest scale: a little less than [`MAX_INT8_PAIR`], because products are rounded.
const LARGEST_WEIGHT: f32 = MAX_INT8_PAIR - 1.0;

pub(super) struct Int8;

/// Products of rows `first_row..first_row + ROWS` of `numbers`, each `width` numbers apart, with codes of `quads` times four
/// inputs; `codes` names the place of a quad of a vector. Every quad `lines` lines are fetched.
///
/// # Safety
/// So many numbers and codes; the level's instructions enabled.
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
    numbers: &Numbers<BYTES, N>,
    first_row: usize,
    width: usize,
    quads: usize,
    (fetch, lines): (&mut Fetch, usize),
    codes: impl Fn(usize, usize) -> *const u8,
) -> [[L; VECTORS]; ROWS] {
    let bytes = numbers.from(first_row * width);
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[[L::zero_dots(); VECTORS]; BYTES]; ROWS];
        for quad in 0..quads {
            fetch.next(lines);
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
            let offset = numbers.sums[first_row + row].wrapping_mul(i32::from(ZERO_CODE));
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
    fetch: (&mut Fetch, usize),
    scratch: &mut Scratch,
) {
    let tiles = &chunk.tiles.tiles[first_tile..first_tile + COUNT];
    let (queries, stride) = (&scratch.queries, chunk.value_stride);
    let quads = stride / QUAD;
    // SAFETY: the caller's promise.
    unsafe {
        let codes = |quad, tile: usize| tiles[tile].add(REGISTER_CODES * quad);
        let sums = dots::<L, ROWS, COUNT, _, _>(queries, row, stride, quads, fetch, codes);
        for (at, sums) in sums.iter().enumerate() {
            let step = L::splat(queries.steps[row + at]);
            let weights = scratch.weights.0[row + at].as_mut_ptr();
            for (tile, sum) in sums.iter().enumerate() {
                let scales = L::load(tiles[tile].add(chunk.layout.key_scales).cast());
                let score = sum.mul(step).mul(scales);
                score.store(weights.add((first_tile + tile) * LANES));
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
    fetch: (&mut Fetch, usize),
    scratch: &mut Scratch,
) {
    let (weights, stride) = (&scratch.value_weights, chunk.value_stride);
    let quads = chunk.tiles.count() * QUADS;
    // SAFETY: the caller's promise.
    unsafe {
        let codes = |quad: usize, vector| {
            let first = quad % QUADS * stride + dim + vector * LANES;
            chunk.tiles.tiles[quad / QUADS].add(chunk.layout.values + QUAD * first)
        };
        let sums = dots::<L, ROWS, DIMS, _, _>(weights, row, CHUNK, quads, fetch, codes);
        for (at, sums) in sums.iter().enumerate() {
            let row = row + at;
            let before = L::splat(scratch.factors.before[row]);
            let factor = L::splat(scratch.factors.chunk[row] * weights.steps[row]);
            let acc = scratch.current.acc_from(row)[dim..].as_mut_ptr();
            for (vector, sum) in sums.iter().enumerate() {
                let acc = acc.add(vector * LANES);
                sum.mul_add(factor, L::load(acc).mul(before)).store(acc);
            }
        }
    }
}

/// Call `$body` for the next rows, as many as the level's registers hold; evaluates to how many. Up to six with one sum each
/// and up to three with two.
macro_rules! next_rows {
    ($level:ty, $left:expr, one $body:ident::<$count:literal>($($arg:expr),*)) => {
        match $left {
            6.. if <$level>::WIDE => { $body::<$level, 6, $count>($($arg),*); 6 }
            left => next_rows!($level, left, two $body::<$count>($($arg),*)),
        }
    };
    ($level:ty, $left:expr, two $body:ident::<$count:literal>($($arg:expr),*)) => {
        match $left {
            3.. if <$level>::WIDE => { $body::<$level, 3, $count>($($arg),*); 3 }
            2 if <$level>::WIDE => { $body::<$level, 2, $count>($($arg),*); 2 }
            _ => { $body::<$level, 1, $count>($($arg),*); 1 }
        }
    };
}

/// What makes integers of the weights of a chunk's values.
struct ValueScales {
    /// What is seen of the chunk.
    visible: Visible,
    /// The largest of the scales there, or NaN if one is that.
    largest: f32,
    /// The values' scales, the largest of which is [`LARGEST_WEIGHT`] here; zero for what is not seen.
    factors: Aligned<[[f32; LANES]; CHUNK / LANES]>,
    /// What one stands for.
    step: f32,
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
            step: 0.0,
        };
        // SAFETY: the caller's promise; sixteen factors.
        unsafe {
            scales.take::<L>(chunk, 1.0);
            scales.largest = max_abs::<L>(scales.factors.0.as_flattened());
            let (step, inverse) = symmetric_scale(scales.largest, LARGEST_WEIGHT);
            scales.step = step;
            for factors in &mut scales.factors.0[..chunk.tiles.count()] {
                let scaled = L::load(factors.as_ptr()).mul(L::splat(inverse));
                scaled.store(factors.as_mut_ptr());
            }
        }
        scales
    }

    /// Those of a token that sees `visible`: as a rule one position more.
    ///
    /// # Safety
    /// As [`ValueScales::new`], of the same chunk.
    #[inline(always)]
    unsafe fn turn_to<L: Int8Dot>(&mut self, chunk: &Chunk, visible: Visible) {
        let seen = std::mem::replace(&mut self.visible, visible);
        // SAFETY: the caller's promise; positions are the chunk's.
        unsafe {
            if visible.first != seen.first || visible.end < seen.end {
                *self = Self::new::<L>(chunk, visible);
                return;
            }
            for position in seen.end..visible.end {
                let scale = (*Self::of_tile(chunk, position / LANES))[position % LANES].abs();
                // NaN stays, and is taken.
                self.largest = if scale > self.largest || scale.is_nan() {
                    scale
                } else {
                    self.largest
                };
            }
            let (step, inverse) = symmetric_scale(self.largest, LARGEST_WEIGHT);
            self.step = step;
            self.take::<L>(chunk, inverse);
        }
    }

    /// The scales of a tile's values.
    fn of_tile(chunk: &Chunk, tile: usize) -> *const [f32; LANES] {
        let scales = chunk.tiles.tiles[tile].wrapping_add(chunk.layout.value_scales);
        scales.cast()
    }

    /// Take the scales of what is seen, times `inverse`, for factors.
    ///
    /// # Safety
    /// As [`ValueScales::new`].
    #[inline(always)]
    unsafe fn take<L: Int8Dot>(&mut self, chunk: &Chunk, inverse: f32) {
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

/// Make integers of the weights of rows `from..to`, times their values' scales.
///
/// No weight is larger than one, so the largest scale that a token sees bounds them all: heads share it, and most tokens.
///
/// # Safety
/// As [`Element::add_values`].
#[inline(always)]
unsafe fn scale_weights<L: Int8Dot>(
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
            unsafe { scales.turn_to::<L>(chunk, visible) };
        }
        for row in token * task.heads..(token + 1) * task.heads {
            let weights = &scratch.weights.0[row].as_chunks().0[..tiles];
            let numbers = &mut scratch.value_weights;
            numbers.steps[row] = scales.step;
            // SAFETY: weights are at most one; the rest is the caller's promise.
            unsafe { numbers.set::<L>(row, row * CHUNK, weights, &scales.factors.0) };
        }
    }
}

impl Element for Int8 {
    const TURN: usize = QUAD;

    #[inline(always)]
    unsafe fn take_queries<L: Int8Dot>(rows: usize, stride: usize, scratch: &mut Scratch) {
        let size = hadamard_size(stride) as f32;
        let (queries, mut inverses) = (&mut scratch.queries, [0.0; MAX_ROWS]);
        // One thing after the other for all rows: those of one row wait for one another.
        for query in scratch.q.0[..rows * stride].chunks_exact_mut(stride) {
            // SAFETY: the same contract.
            unsafe { hadamard::<L>(query) }; // as keys are
        }
        for (row, query) in scratch.q.0[..rows * stride]
            .chunks_exact(stride)
            .enumerate()
        {
            // SAFETY: the same contract.
            let (step, inverse) = unsafe { symmetric_scale_of::<L>(query, MAX_INT8) };
            (queries.steps[row], inverses[row]) = (step / size, inverse);
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
        fetch: &mut Fetch,
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
                            one scores::<4>(chunk, tile, row, (fetch, lines), scratch)
                        );
                        tile += 4;
                    } else if L::WIDE && tiles - tile == 3 {
                        step = next_rows!(
                            L,
                            left,
                            one scores::<3>(chunk, tile, row, (fetch, lines), scratch)
                        );
                        tile += 3;
                    } else if L::WIDE && tiles - tile == 2 {
                        step = next_rows!(
                            L,
                            left,
                            one scores::<2>(chunk, tile, row, (fetch, lines), scratch)
                        );
                        tile += 2;
                    } else {
                        step = next_rows!(
                            L,
                            left,
                            one scores::<1>(chunk, tile, row, (fetch, lines), scratch)
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
        fetch: &mut Fetch,
        lines: usize,
        scratch: &mut Scratch,
    ) {
        // SAFETY: the same contract, block of rows by block of rows.
        unsafe {
            scale_weights::<L>(task, chunk, (from, to), scratch);
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
                            two add_values::<4>(chunk, dim, row, (fetch, lines), scratch)
                        );
                        dim += 4 * LANES;
                    } else if L::WIDE && vectors >= 2 {
                        step = next_rows!(
                            L,
                            left,
                            two add_values::<2>(chunk, dim, row, (fetch, lines), scratch)
                        );
                        dim += 2 * LANES;
                    } else {
                        step = next_rows!(
                            L,
                            left,
                            two add_values::<1>(chunk, dim, row, (fetch, lines), scratch)
                        );
                        dim += LANES;
                    }
                }
                row += step;
            }
        }
    }
}
