//! Keys and values as int8, multiplied as integers.
//!
//! Queries and weights become integers of two bytes ([`super::two_bytes`]), sums are exact, and a dot product takes four
//! dimensions of a key, or four positions of a value, at once: a sixth of what widening codes to floats costs.
//! Scores and values are the same product, some rows' numbers times some registers of codes.

use super::CHUNK;
use super::fetch::Fetch;
use super::kernel::{Chunk, Element};
use super::state::Scratch;
use super::two_bytes::TwoBytes;
use crate::kv_cache::{QUAD, ZERO_CODE};
use crate::simd::{ByteDots, CODES, LANES, hadamard, hadamard_size};

/// Quads in a turn: sixteen dimensions, or a tile's tokens.
const QUADS: usize = LANES / QUAD;

pub(super) struct Int8;

/// Products of rows `first_row..first_row + ROWS` of `numbers`, each `stride` numbers apart, with codes of `turns` times sixteen
/// inputs; `codes` names the place of a turn's quad of a vector. Every turn `lines` lines are fetched.
///
/// # Safety
/// So many numbers and codes; the level's instructions enabled.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
unsafe fn dots<L: ByteDots, const ROWS: usize, const VECTORS: usize, const N: usize>(
    numbers: &TwoBytes<N>,
    first_row: usize,
    stride: usize,
    turns: usize,
    (fetch, lines): (&mut Fetch, usize),
    codes: impl Fn(usize, usize, usize) -> *const u8,
) -> [[L; VECTORS]; ROWS] {
    let [high, low] = numbers.from(first_row * stride);
    // SAFETY: the caller's promise.
    unsafe {
        let mut highs = [[L::zero_dots(); VECTORS]; ROWS];
        let mut lows = highs;
        for turn in 0..turns {
            fetch.next(lines);
            for quad in 0..QUADS {
                let mut loaded = [L::load_codes(codes(turn, quad, 0)); VECTORS];
                for vector in 1..VECTORS {
                    loaded[vector] = L::load_codes(codes(turn, quad, vector));
                }
                for row in 0..ROWS {
                    let at = row * stride + LANES * turn + QUAD * quad;
                    let (high, low) = (L::splat_quad(high.add(at)), L::splat_quad(low.add(at)));
                    for vector in 0..VECTORS {
                        highs[row][vector] = L::add_dots(highs[row][vector], loaded[vector], high);
                        lows[row][vector] = L::add_dots(lows[row][vector], loaded[vector], low);
                    }
                }
            }
        }
        let mut products = [[L::splat(0.0); VECTORS]; ROWS];
        for row in 0..ROWS {
            let offset = numbers.sums[first_row + row].wrapping_mul(i32::from(ZERO_CODE));
            for vector in 0..VECTORS {
                products[row][vector] = L::join_dots(highs[row][vector], lows[row][vector], offset);
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
unsafe fn scores<L: ByteDots, const ROWS: usize, const COUNT: usize>(
    chunk: &Chunk,
    first_tile: usize,
    row: usize,
    fetch: (&mut Fetch, usize),
    scratch: &mut Scratch,
) {
    let tiles = &chunk.tiles.tiles[first_tile..first_tile + COUNT];
    let (queries, stride) = (&scratch.queries, chunk.value_stride);
    let turns = stride / LANES;
    // SAFETY: the caller's promise.
    unsafe {
        let codes = |turn, quad, tile: usize| tiles[tile].add(CODES * (QUADS * turn + quad));
        let sums = dots::<L, ROWS, COUNT, _>(queries, row, stride, turns, fetch, codes);
        for (at, sums) in sums.iter().enumerate() {
            let factor = queries.steps[row + at] * chunk.factor / hadamard_size(stride) as f32;
            let factor = L::splat(factor);
            let weights = scratch.weights.0[row + at].as_mut_ptr();
            for (tile, sum) in sums.iter().enumerate() {
                let scales = L::load(tiles[tile].add(chunk.layout.key_scales).cast());
                let score = sum.mul(factor).mul(scales);
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
unsafe fn add_values<L: ByteDots, const ROWS: usize, const DIMS: usize>(
    chunk: &Chunk,
    dim: usize,
    row: usize,
    fetch: (&mut Fetch, usize),
    scratch: &mut Scratch,
) {
    let (weights, stride) = (&scratch.value_weights, chunk.value_stride);
    let turns = chunk.tiles.count();
    // SAFETY: the caller's promise.
    unsafe {
        let codes = |tile: usize, quad, vector| {
            let first = quad * stride + dim + vector * LANES;
            chunk.tiles.tiles[tile].add(chunk.layout.values + QUAD * first)
        };
        let sums = dots::<L, ROWS, DIMS, _>(weights, row, CHUNK, turns, fetch, codes);
        for (at, sums) in sums.iter().enumerate() {
            let step = L::splat(weights.steps[row + at]);
            let acc = scratch.current.acc_from(row + at);
            for (vector, sum) in sums.iter().enumerate() {
                let acc = acc[dim + vector * LANES..].as_mut_ptr();
                sum.mul_add(step, L::load(acc)).store(acc);
            }
        }
    }
}

/// Call `$body` for the next rows, as many as the level's registers hold with two sums each; evaluates to how many.
macro_rules! next_rows {
    ($level:ty, $left:expr, $body:ident::<$count:literal>($($arg:expr),*)) => {
        match $left {
            3.. if <$level>::WIDE => { $body::<$level, 3, $count>($($arg),*); 3 }
            2 if <$level>::WIDE => { $body::<$level, 2, $count>($($arg),*); 2 }
            _ => { $body::<$level, 1, $count>($($arg),*); 1 }
        }
    };
}

/// Weigh the weights of rows `from..to` by their values' scales, and make integers of them.
///
/// # Safety
/// As [`Element::add_values`].
#[inline(always)]
unsafe fn scale_weights<L: ByteDots>(
    chunk: &Chunk,
    (from, to): (usize, usize),
    scratch: &mut Scratch,
) {
    let count = chunk.tiles.count();
    for row in from..to {
        let weights = &mut scratch.weights.0[row][..count * LANES];
        // SAFETY: the caller's promise.
        unsafe {
            let zero = L::splat(0.0);
            for (tile, weights) in chunk
                .tiles
                .tiles
                .iter()
                .zip(weights.as_chunks_mut::<LANES>().0)
            {
                let weight = L::load(weights.as_ptr());
                let scaled = weight.mul(L::load(tile.add(chunk.layout.value_scales).cast()));
                // What a row does not see weighs nothing, whatever its scale.
                let scaled = zero.select_less(weight, scaled, zero);
                scaled.store(weights.as_mut_ptr());
            }
            scratch.value_weights.set::<L>(row, row * CHUNK, weights);
        }
    }
}

impl Element for Int8 {
    const TURN: usize = LANES;

    #[inline(always)]
    unsafe fn take_queries<L: ByteDots>(rows: usize, stride: usize, scratch: &mut Scratch) {
        for row in 0..rows {
            let query = &mut scratch.q.0[row * stride..][..stride];
            // SAFETY: the same contract.
            unsafe {
                hadamard::<L>(query); // as keys are
                scratch.queries.set::<L>(row, row * stride, query);
            }
        }
    }

    #[inline(always)]
    unsafe fn scores<L: ByteDots>(
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
                    if L::WIDE && tiles - tile > 2 {
                        step = next_rows!(
                            L,
                            left,
                            scores::<4>(chunk, tile, row, (fetch, lines), scratch)
                        );
                        tile += 4;
                    } else if L::WIDE && tiles - tile == 2 {
                        step = next_rows!(
                            L,
                            left,
                            scores::<2>(chunk, tile, row, (fetch, lines), scratch)
                        );
                        tile += 2;
                    } else {
                        step = next_rows!(
                            L,
                            left,
                            scores::<1>(chunk, tile, row, (fetch, lines), scratch)
                        );
                        tile += 1;
                    }
                }
                row += step;
            }
        }
    }

    #[inline(always)]
    unsafe fn add_values<L: ByteDots>(
        chunk: &Chunk,
        (from, to): (usize, usize),
        fetch: &mut Fetch,
        lines: usize,
        scratch: &mut Scratch,
    ) {
        // SAFETY: the same contract, block of rows by block of rows.
        unsafe {
            scale_weights::<L>(chunk, (from, to), scratch);
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
                            add_values::<4>(chunk, dim, row, (fetch, lines), scratch)
                        );
                        dim += 4 * LANES;
                    } else if L::WIDE && vectors >= 2 {
                        step = next_rows!(
                            L,
                            left,
                            add_values::<2>(chunk, dim, row, (fetch, lines), scratch)
                        );
                        dim += 2 * LANES;
                    } else {
                        step = next_rows!(
                            L,
                            left,
                            add_values::<1>(chunk, dim, row, (fetch, lines), scratch)
                        );
                        dim += LANES;
                    }
                }
                row += step;
            }
        }
    }
}
