//! Attention over float keys and values: sums over dimensions of `query · key`, sixteen positions a vector, and sums
//! over positions of `probability · value`, sixteen dimensions a vector.
//!
//! Both are register-blocked, some rows times some vectors of accumulators, so that every key and value loaded serves
//! several rows, and every query and probability several vectors. With many rows a chunk of f16 is converted to f32 once
//! for all of them.

use super::CHUNK;
use super::kernel::{Chunk, Element, accumulate_chunk};
use super::prefetch::{Prefetcher, Tiles};
use super::softmax::rescaled_sum;
use super::state::Scratch;
use super::task::Task;
use crate::simd::{Int8Dot, LANES, Lanes};

/// Dimensions of keys, or tokens of values, between two prefetches.
const PREFETCH_STEP: usize = 8;

/// From this number of rows on, a chunk is converted to f32 first.
const WIDEN_ROWS: usize = 12;

/// A float type of the KV cache.
pub(super) trait Float {
    const BYTES: usize;
    /// # Safety
    /// As [`Lanes::load`].
    unsafe fn load<L: Lanes>(from: *const u8) -> L;
}

pub(super) struct F16;
pub(super) struct F32;

impl Float for F16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load_f16(from.cast()) }
    }
}

impl Float for F32 {
    const BYTES: usize = 4;
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load(from.cast()) }
    }
}

/// Scores of `ROWS` rows against `COUNT` key tiles: one chain of multiply-adds for each row and tile.
///
/// # Safety
/// Tiles of `head_dim` dimensions; `ROWS` queries `q_stride` apart; the level's instructions enabled.
#[inline(always)]
unsafe fn scores<L: Lanes, E: Float, const ROWS: usize, const COUNT: usize>(
    chunk: &Chunk,
    first_tile: usize,
    q: *const f32,
    q_stride: usize,
    (prefetcher, lines): (&mut Prefetcher, usize),
    out: &mut [[f32; CHUNK]],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let tiles = &chunk.tiles.tiles[first_tile..first_tile + COUNT];
        let mut sums = [[L::splat(0.0); COUNT]; ROWS];
        for first in (0..chunk.head_dim).step_by(PREFETCH_STEP) {
            prefetcher.next(lines);
            for dim in first..chunk.head_dim.min(first + PREFETCH_STEP) {
                let offset = dim * LANES * E::BYTES;
                let mut keys = [L::splat(0.0); COUNT];
                for (tile, key) in keys.iter_mut().enumerate() {
                    *key = E::load(tiles[tile].add(offset));
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let q = L::splat(*q.add(row * q_stride + dim));
                    for (sum, key) in sums.iter_mut().zip(keys) {
                        *sum = q.mul_add(key, *sum);
                    }
                }
            }
        }
        for (sums, out) in sums.into_iter().zip(out) {
            for (tile, sum) in sums.into_iter().enumerate() {
                sum.store(out.as_mut_ptr().add((first_tile + tile) * LANES));
            }
        }
    }
}

/// Add `ROWS` rows' weighted values, for `DIMS` times 16 dimensions from `dim` on.
///
/// # Safety
/// As [`Element::add_values`].
#[inline(always)]
unsafe fn add_values<L: Lanes, E: Float, const ROWS: usize, const DIMS: usize>(
    chunk: &Chunk,
    dim: usize,
    first_row: usize,
    (prefetcher, lines): (&mut Prefetcher, usize),
    scratch: &mut Scratch,
) {
    let stride = chunk.value_stride;
    let probs = &scratch.probs.0[first_row..][..ROWS];
    // SAFETY: the caller's promise.
    unsafe {
        let mut lanes = [[L::splat(0.0); DIMS]; ROWS];
        let probs = probs.as_ptr().cast::<f32>();
        let tokens = chunk.tiles.positions;
        for first in (0..tokens).step_by(PREFETCH_STEP) {
            prefetcher.next(lines);
            // The tokens of one prefetch step are in one tile.
            let from = chunk.tiles.tiles[first / LANES].add(chunk.layout.values);
            for token in first..tokens.min(first + PREFETCH_STEP) {
                let from = from.add((token % LANES * stride + dim) * E::BYTES);
                let mut values = [L::splat(0.0); DIMS];
                for (at, value) in values.iter_mut().enumerate() {
                    *value = E::load(from.add(at * LANES * E::BYTES));
                }
                for (row, lanes) in lanes.iter_mut().enumerate() {
                    let prob = L::splat(*probs.add(row * CHUNK + token));
                    for (lane, value) in lanes.iter_mut().zip(values) {
                        *lane = prob.mul_add(value, *lane);
                    }
                }
            }
        }
        for (row, lanes) in lanes.into_iter().enumerate() {
            let row = first_row + row;
            let before = L::splat(scratch.factors.before[row]);
            let factor = L::splat(scratch.factors.chunk[row]);
            let acc = scratch.current.acc_from(row)[dim..].as_mut_ptr();
            for (vector, lane) in lanes.into_iter().enumerate() {
                let acc = acc.add(vector * LANES);
                rescaled_sum((lane, factor), (L::load(acc), before)).store(acc);
            }
        }
    }
}

/// Call `$body` for as many of the next rows as the level's registers hold; evaluates to their number.
macro_rules! next_rows {
    ($level:ty, $left:expr, $body:ident::<$($ty:ty),*; $extra:tt>($($arg:expr),*)) => {
        match $left {
            4.. if <$level>::WIDE => { $body::<$($ty),*, 4, $extra>($($arg),*); 4 }
            3.. if <$level>::WIDE => { $body::<$($ty),*, 3, $extra>($($arg),*); 3 }
            2.. => { $body::<$($ty),*, 2, $extra>($($arg),*); 2 }
            _ => { $body::<$($ty),*, 1, $extra>($($arg),*); 1 }
        }
    };
}

/// Convert a chunk to f32 in `to`; returns the chunk of the copies.
///
/// # Safety
/// The chunk is valid for elements `E`; the level's instructions enabled.
#[inline(always)]
unsafe fn widen<L: Lanes, E: Float>(
    chunk: &Chunk,
    to: &mut [f32],
    mut prefetcher: Prefetcher,
) -> Chunk {
    let (dim, stride) = (chunk.head_dim, chunk.value_stride);
    let (mut wide, from) = (*chunk, &chunk.tiles);
    let (keys, tile_floats) = (LANES * dim, LANES * (dim + stride));
    assert!(to.len() >= from.count() * tile_floats);
    wide.layout.values = keys * size_of::<f32>();
    let turns = from.count() * dim.div_ceil(PREFETCH_STEP);
    let lines = prefetcher.total.div_ceil(turns);
    // SAFETY: tiles of sixteen times the dimensions, inside both by the check.
    unsafe {
        for (number, tile) in from.tiles[..from.count()].iter().enumerate() {
            let to = to.as_mut_ptr().add(number * tile_floats);
            wide.tiles.tiles[number] = to.cast_const().cast();
            for first in (0..dim).step_by(PREFETCH_STEP) {
                prefetcher.next(lines);
                for at in first..dim.min(first + PREFETCH_STEP) {
                    let key: L = E::load(tile.add(at * LANES * E::BYTES));
                    key.store(to.add(at * LANES));
                }
            }
            let (tile, to) = (tile.add(chunk.layout.values), to.add(keys));
            let tokens = LANES.min(from.positions - number * LANES);
            for at in (0..tokens * stride).step_by(LANES) {
                let value: L = E::load(tile.add(at * E::BYTES));
                value.store(to.add(at));
            }
        }
    }
    let first = wide.tiles.tiles[0];
    wide.tiles.tiles[from.count()..].fill(first);
    wide
}

impl<E: Float> Element for E {
    const PREFETCH_STEP: usize = PREFETCH_STEP;

    #[inline(always)]
    unsafe fn accumulate<L: Int8Dot>(
        task: &Task<'_>,
        chunk: &Chunk,
        rows: (usize, usize),
        prefetcher: Prefetcher,
        scratch: &mut Scratch,
    ) {
        // SAFETY: the same contract; what is widened is valid as floats.
        unsafe {
            if E::BYTES == F32::BYTES || rows.1 - rows.0 < WIDEN_ROWS {
                return accumulate_chunk::<L, E>(task, chunk, rows, prefetcher, scratch);
            }
            let chunk = widen::<L, E>(chunk, &mut scratch.wide.0, prefetcher);
            let prefetcher = Prefetcher::new(&Tiles::NONE);
            accumulate_chunk::<L, F32>(task, &chunk, rows, prefetcher, scratch);
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
        let (tiles, stride) = (chunk.tiles.count(), chunk.value_stride);
        let Scratch { q, probs, .. } = scratch;
        // SAFETY: the same contract, block of rows by block of rows.
        unsafe {
            let mut row = from;
            while row < to {
                let lines = if row == from { lines } else { 0 };
                let (left, q) = (to - row, q.0.as_ptr().add(row * stride));
                let out = &mut probs.0[row..];
                let mut step = 0;
                let mut tile = 0;
                while tile < tiles {
                    if L::WIDE && tiles - tile > 2 {
                        step = next_rows!(L, left, scores::<L, E; 4>(chunk, tile, q, stride, (prefetcher, lines), out));
                        tile += 4;
                    } else {
                        step = next_rows!(L, left, scores::<L, E; 2>(chunk, tile, q, stride, (prefetcher, lines), out));
                        tile += 2;
                    }
                }
                row += step;
            }
        }
    }

    #[inline(always)]
    unsafe fn add_values<L: Int8Dot>(
        _task: &Task<'_>,
        chunk: &Chunk,
        (from, to): (usize, usize),
        prefetcher: &mut Prefetcher,
        lines: usize,
        scratch: &mut Scratch,
    ) {
        let stride = chunk.value_stride;
        // SAFETY: the same contract, block of rows by block of rows.
        unsafe {
            let mut row = from;
            while row < to {
                let (left, lines) = (to - row, if row == from { lines } else { 0 });
                let mut step = 0;
                let mut dim = 0;
                while dim < stride {
                    if L::WIDE && stride - dim >= 4 * LANES {
                        step = next_rows!(L, left, add_values::<L, E; 4>(chunk, dim, row, (prefetcher, lines), scratch));
                        dim += 4 * LANES;
                    } else if stride - dim >= 2 * LANES {
                        step = next_rows!(L, left, add_values::<L, E; 2>(chunk, dim, row, (prefetcher, lines), scratch));
                        dim += 2 * LANES;
                    } else {
                        step = next_rows!(L, left, add_values::<L, E; 1>(chunk, dim, row, (prefetcher, lines), scratch));
                        dim += LANES;
                    }
                }
                row += step;
            }
        }
    }
}
