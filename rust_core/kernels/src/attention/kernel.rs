//! The attention kernel. Hot path.
//!
//! Scores are sums over dimensions of `query · key`, sixteen positions a vector; values are sums over
//! positions of `weight · value`, sixteen dimensions a vector. Both are blocked the same way: some rows
//! times some vectors of accumulators, so that every key and value loaded serves several rows and every
//! query and weight several vectors. Many rows have a chunk widened to floats once for all of them.

use super::fetch::{Fetch, Tiles};
use super::softmax::weigh;
use super::state::{Scratch, State};
use super::task::Task;
use super::{CHUNK, SPLIT};
use crate::kv_cache::{KvCache, KvDtype};
use crate::simd::{LANES, Lanes, by_level};

/// Dimensions of keys, or tokens of values, between two looks at what is to be fetched.
const TURN: usize = 8;

/// From so many rows on a chunk is widened first.
const WIDEN_ROWS: usize = 12;

/// Element type of the cache, at compile time.
trait Element {
    const BYTES: usize;
    /// # Safety
    /// As [`Lanes::load`].
    unsafe fn load<L: Lanes>(from: *const u8) -> L;
}

struct F16;
struct F32;
struct Int8;

impl Element for F16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load_f16(from.cast()) }
    }
}

impl Element for F32 {
    const BYTES: usize = 4;
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load(from.cast()) }
    }
}

impl Element for Int8 {
    const BYTES: usize = 1;
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load_i8(from.cast()) }
    }
}

/// A chunk's keys and values, and how to use them.
#[derive(Clone, Copy)]
struct Chunk {
    tiles: Tiles,
    /// Elements from one position's value to the next.
    value_stride: usize,
    head_dim: usize,
    /// Multiplied into every score, which is of base 2.
    factor: f32,
}

/// Scores of `ROWS` rows against `COUNT` key tiles: one chain of multiply-adds a row and tile.
///
/// # Safety
/// Tiles of `head_dim` dimensions; `ROWS` queries `q_stride` apart; the level's instructions enabled.
#[inline(always)]
unsafe fn scores<L: Lanes, E: Element, const ROWS: usize, const COUNT: usize>(
    chunk: &Chunk,
    first_tile: usize,
    q: *const f32,
    q_stride: usize,
    (fetch, lines): (&mut Fetch, usize),
    weights: &mut [[f32; CHUNK]],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let tiles = &chunk.tiles.tiles[first_tile..first_tile + COUNT];
        let mut sums = [[L::splat(0.0); COUNT]; ROWS];
        for first in (0..chunk.head_dim).step_by(TURN) {
            fetch.next(lines);
            for dim in first..chunk.head_dim.min(first + TURN) {
                let offset = dim * LANES * E::BYTES;
                let mut keys = [L::splat(0.0); COUNT];
                for (tile, key) in keys.iter_mut().enumerate() {
                    *key = E::load(tiles[tile].keys.add(offset));
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let q = L::splat(*q.add(row * q_stride + dim));
                    for (sum, key) in sums.iter_mut().zip(keys) {
                        *sum = q.mul_add(key, *sum);
                    }
                }
            }
        }
        for (sums, weights) in sums.into_iter().zip(weights) {
            for (tile, sum) in sums.into_iter().enumerate() {
                let mut sum = sum.mul(L::splat(chunk.factor));
                let scales = tiles[tile].key_scales;
                if !scales.is_null() {
                    sum = sum.mul(L::load(scales));
                }
                sum.store(weights.as_mut_ptr().add((first_tile + tile) * LANES));
            }
        }
    }
}

/// Add `ROWS` rows' weighted values, for `DIMS` times 16 dimensions from `dim` on.
///
/// # Safety
/// `chunk` names its positions' values; `acc` has `ROWS` rows `value_stride` apart; the level's
/// instructions enabled.
#[inline(always)]
unsafe fn add_values<L: Lanes, E: Element, const ROWS: usize, const DIMS: usize>(
    chunk: &Chunk,
    dim: usize,
    (fetch, lines): (&mut Fetch, usize),
    weights: &[[f32; CHUNK]],
    acc: &mut [f32],
) {
    let stride = chunk.value_stride;
    // SAFETY: the caller's promise.
    unsafe {
        let mut lanes = [[L::splat(0.0); DIMS]; ROWS];
        for (row, lanes) in lanes.iter_mut().enumerate() {
            for (at, lane) in lanes.iter_mut().enumerate() {
                *lane = L::load(acc.as_ptr().add(row * stride + dim + at * LANES));
            }
        }
        let weights = weights.as_ptr().cast::<f32>();
        let tokens = chunk.tiles.positions;
        for first in (0..tokens).step_by(TURN) {
            fetch.next(lines);
            // A turn's tokens stand in one tile.
            let from = chunk.tiles.tiles[first / LANES].values;
            for token in first..tokens.min(first + TURN) {
                let from = from.add((token % LANES * stride + dim) * E::BYTES);
                let mut values = [L::splat(0.0); DIMS];
                for (at, value) in values.iter_mut().enumerate() {
                    *value = E::load(from.add(at * LANES * E::BYTES));
                }
                for (row, lanes) in lanes.iter_mut().enumerate() {
                    let weight = L::splat(*weights.add(row * CHUNK + token));
                    for (lane, value) in lanes.iter_mut().zip(values) {
                        *lane = weight.mul_add(value, *lane);
                    }
                }
            }
        }
        for (row, lanes) in lanes.into_iter().enumerate() {
            for (at, lane) in lanes.into_iter().enumerate() {
                lane.store(acc.as_mut_ptr().add(row * stride + dim + at * LANES));
            }
        }
    }
}

/// Call `$body` for the next rows, as many as the level's registers hold; evaluates to how many.
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

/// One chunk for rows `from..to`: scores, weights, values.
///
/// # Safety
/// The chunk is valid for elements `E`, queries and state for the rows; the level's instructions enabled.
#[inline(always)]
unsafe fn advance<L: Lanes, E: Element>(
    task: &Task<'_>,
    chunk: &Chunk,
    start: usize,
    (from, to): (usize, usize),
    mut fetch: Fetch,
    scratch: &mut Scratch,
) {
    let tiles = chunk.tiles.count();
    let stride = chunk.value_stride;
    // Spread over the first rows' scores and values.
    let turns = chunk.head_dim.div_ceil(TURN) + chunk.tiles.positions.div_ceil(TURN);
    let lines = fetch.total.div_ceil(turns);
    let Scratch {
        q,
        weights,
        current,
        ..
    } = scratch;
    // SAFETY: the caller's promise, block of rows by block of rows.
    unsafe {
        let mut row = from;
        while row < to {
            let lines = if row == from { lines } else { 0 };
            let (left, q) = (to - row, q.0.as_ptr().add(row * stride));
            let weights = &mut weights.0[row..];
            let mut step = 0;
            let mut tile = 0;
            while tile < tiles {
                if L::WIDE && tiles - tile > 2 {
                    step = next_rows!(L, left, scores::<L, E; 4>(chunk, tile, q, stride, (&mut fetch, lines), weights));
                    tile += 4;
                } else {
                    step = next_rows!(L, left, scores::<L, E; 2>(chunk, tile, q, stride, (&mut fetch, lines), weights));
                    tile += 2;
                }
            }
            row += step;
        }
        for token in from / task.heads..to / task.heads {
            let position = task.position(token);
            // Visible positions of the chunk: [first, end). Slots behind `end` may hold anything.
            let first = task
                .first_visible(position)
                .saturating_sub(start)
                .min(CHUNK);
            let end = (position + 1).saturating_sub(start).min(CHUNK);
            if first == 0 && end >= tiles * LANES {
                continue;
            }
            for weights in &mut weights.0[token * task.heads..][..task.heads] {
                weights[..first].fill(f32::NEG_INFINITY);
                if end < tiles * LANES {
                    weights[end..tiles * LANES].fill(f32::NEG_INFINITY);
                }
            }
        }
        for first in (from..to).step_by(LANES) {
            let last = to.min(first + LANES);
            let factors = weigh::<L>(&mut weights.0[first..last], tiles, current, first);
            for (row, factor) in (first..last).zip(factors) {
                if factor != 1.0 {
                    let factor = L::splat(factor);
                    for acc in current.acc_from(row)[..stride].chunks_exact_mut(LANES) {
                        L::load(acc.as_ptr()).mul(factor).store(acc.as_mut_ptr());
                    }
                }
            }
        }
        for (tile, place) in chunk.tiles.tiles[..tiles].iter().enumerate() {
            if place.value_scales.is_null() {
                break;
            }
            let scales = L::load(place.value_scales);
            for weights in &mut weights.0[from..to] {
                let at = weights.as_mut_ptr().add(tile * LANES);
                L::load(at).mul(scales).store(at);
            }
        }
        let mut row = from;
        while row < to {
            let left = to - row;
            let (weights, acc) = (&weights.0[row..], current.acc_from(row));
            let lines = if row == from { lines } else { 0 };
            let mut step = 0;
            let mut dim = 0;
            while dim < stride {
                if L::WIDE && stride - dim >= 4 * LANES {
                    step = next_rows!(L, left, add_values::<L, E; 4>(chunk, dim, (&mut fetch, lines), weights, acc));
                    dim += 4 * LANES;
                } else if stride - dim >= 2 * LANES {
                    step = next_rows!(L, left, add_values::<L, E; 2>(chunk, dim, (&mut fetch, lines), weights, acc));
                    dim += 2 * LANES;
                } else {
                    step = next_rows!(L, left, add_values::<L, E; 1>(chunk, dim, (&mut fetch, lines), weights, acc));
                    dim += LANES;
                }
            }
            row += step;
        }
    }
}

/// Widen a chunk to floats; the result names the copies.
///
/// # Safety
/// The chunk is valid for elements `E`; the level's instructions enabled.
#[inline(always)]
unsafe fn widen<L: Lanes, E: Element>(
    chunk: &Chunk,
    keys: &mut [f32],
    values: &mut [f32],
    mut fetch: Fetch,
) -> Chunk {
    let (dim, stride) = (chunk.head_dim, chunk.value_stride);
    let (mut wide, from) = (*chunk, &chunk.tiles);
    assert!(keys.len() >= CHUNK * dim && values.len() >= CHUNK * stride);
    let turns = from.count() * dim.div_ceil(TURN);
    let lines = fetch.total.div_ceil(turns);
    // SAFETY: tiles of sixteen times the dimensions, inside both by the check.
    unsafe {
        for (number, tile) in from.tiles[..from.count()].iter().enumerate() {
            let wide = &mut wide.tiles.tiles[number];
            let to = keys.as_mut_ptr().add(number * LANES * dim);
            for first in (0..dim).step_by(TURN) {
                fetch.next(lines);
                for at in first..dim.min(first + TURN) {
                    let key: L = E::load(tile.keys.add(at * LANES * E::BYTES));
                    key.store(to.add(at * LANES));
                }
            }
            wide.keys = to.cast_const().cast();
            let to = values.as_mut_ptr().add(number * LANES * stride);
            let tokens = LANES.min(from.positions - number * LANES);
            for at in (0..tokens * stride).step_by(LANES) {
                let value: L = E::load(tile.values.add(at * E::BYTES));
                value.store(to.add(at));
            }
            wide.values = to.cast_const().cast();
        }
    }
    let first = wide.tiles.tiles[0];
    wide.tiles.tiles[from.count()..].fill(first);
    wide
}

/// Merge what rows `from..to` have seen of a split into what they saw before, and start afresh.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn end_split<L: Lanes>((from, to): (usize, usize), current: &mut State, total: &mut State) {
    for row in from..to {
        let (max, sums) = (current.max[row], *current.sums(row));
        // SAFETY: the caller's promise.
        unsafe { total.merge::<L>(row, max, &sums, current.acc(row)) };
        current.clear(row);
    }
}

/// Write a row's result.
///
/// # Safety
/// `head_dim` floats at `out`; the level's instructions enabled.
#[inline(always)]
unsafe fn finish<L: Lanes>(state: &State, row: usize, head_dim: usize, out: *mut f32) {
    // SAFETY: whole vectors below `head_dim`, then the rest one by one.
    unsafe {
        let inverse = 1.0 / L::load(state.sums(row).as_ptr()).sum();
        let acc = state.acc(row);
        let whole = head_dim / LANES * LANES;
        for at in (0..whole).step_by(LANES) {
            L::load(acc.as_ptr().add(at))
                .mul(L::splat(inverse))
                .store(out.add(at));
        }
        for (at, acc) in acc.iter().enumerate().take(head_dim).skip(whole) {
            *out.add(at) = acc * inverse;
        }
    }
}

#[inline(always)]
unsafe fn attend_element<L: Lanes, E: Element>(
    kv: &KvCache,
    task: &Task<'_>,
    split: Option<(usize, *mut f32)>,
    ahead: &Tiles,
    scratch: &mut Scratch,
) {
    let head_dim = kv.shape().head_dim;
    let (rows, stride) = (task.rows(), kv.value_stride());
    let factor = task.scale * std::f32::consts::LOG2_E;
    for row in 0..rows {
        let q = &mut scratch.q.0[row * stride..][..head_dim];
        // SAFETY: the queries' extent is the caller's promise.
        let from =
            unsafe { std::slice::from_raw_parts(task.q.add(task.offsets(row, 0).0), head_dim) };
        q.copy_from_slice(from);
    }
    scratch.current.reset(rows, stride);
    scratch.total.reset(rows, stride);
    let range = match split {
        Some((split, _)) => split * (SPLIT / CHUNK)..(split + 1) * (SPLIT / CHUNK),
        None => 0..usize::MAX,
    };
    let mut parted = false;
    // The chunk that comes next, once it is known.
    let mut upcoming = None;
    for (number, segment) in task.segments.iter().enumerate() {
        let (from, to) = (
            segment.tokens.start as usize * task.heads,
            segment.tokens.end as usize * task.heads,
        );
        let (earliest, latest) = task.span(segment);
        let chunks = range.start.max(segment.chunks.start as usize)
            ..range.end.min(segment.chunks.end as usize);
        for index in chunks.clone() {
            let start = index * CHUNK;
            if split.is_none() && index > 0 && start.is_multiple_of(SPLIT) {
                parted = true;
                // SAFETY: the instructions are the caller's promise.
                unsafe { end_split::<L>((from, to), &mut scratch.current, &mut scratch.total) };
            }
            if start + CHUNK <= task.first_visible(earliest) {
                continue;
            }
            if start > latest {
                break;
            }
            let tiles = upcoming
                .take()
                .unwrap_or_else(|| task.tiles(kv, segment, start, latest));
            let next = if index + 1 < chunks.end && start + CHUNK <= latest {
                upcoming.insert(task.tiles(kv, segment, start + CHUNK, latest))
            } else {
                match task.segments.get(number + 1) {
                    Some(next) if split.is_none() && task.window == 0 => {
                        let start = next.chunks.start as usize * CHUNK;
                        upcoming.insert(task.tiles(kv, next, start, task.span(next).1))
                    }
                    _ => ahead,
                }
            };
            let fetch = Fetch::new(next);
            let chunk = Chunk {
                tiles,
                value_stride: stride,
                head_dim,
                factor,
            };
            // SAFETY: tiles, queries and state are valid; the instructions are the caller's promise.
            unsafe {
                if E::BYTES < 4 && to - from >= WIDEN_ROWS {
                    let (keys, values) = (&mut scratch.wide_keys.0, &mut scratch.wide_values.0);
                    let chunk = widen::<L, E>(&chunk, keys, values, fetch);
                    let fetch = Fetch::new(&Tiles::NONE);
                    advance::<L, F32>(task, &chunk, start, (from, to), fetch, scratch);
                } else {
                    advance::<L, E>(task, &chunk, start, (from, to), fetch, scratch);
                }
            }
        }
    }
    if let Some((_, partials)) = split {
        let each = partial_floats(head_dim);
        for row in 0..rows {
            // SAFETY: room for `rows` partials by the caller's promise.
            let partial = unsafe { std::slice::from_raw_parts_mut(partials.add(row * each), each) };
            partial[0] = scratch.current.max[row];
            partial[LANES..2 * LANES].copy_from_slice(scratch.current.sums(row));
            partial[2 * LANES..].copy_from_slice(scratch.current.acc(row));
        }
        return;
    }
    for row in 0..rows {
        // SAFETY: the output's extent and the instructions are the caller's promise.
        unsafe {
            let out = task.out.add(task.offsets(row, head_dim).1);
            if parted {
                end_split::<L>((row, row + 1), &mut scratch.current, &mut scratch.total);
                finish::<L>(&scratch.total, row, head_dim, out);
            } else {
                // Merged into nothing it would be the same.
                finish::<L>(&scratch.current, row, head_dim, out);
            }
        }
    }
}

/// Floats of a row's part of a split: maximum, sums, weighted values.
pub const fn partial_floats(head_dim: usize) -> usize {
    2 * LANES + head_dim.next_multiple_of(LANES)
}

#[inline(always)]
unsafe fn attend_body<L: Lanes>(
    kv: &KvCache,
    task: &Task<'_>,
    split: Option<(usize, *mut f32)>,
    ahead: &Tiles,
    scratch: &mut Scratch,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match kv.shape().dtype {
            KvDtype::F16 => attend_element::<L, F16>(kv, task, split, ahead, scratch),
            KvDtype::F32 => attend_element::<L, F32>(kv, task, split, ahead, scratch),
            KvDtype::Int8 => attend_element::<L, Int8>(kv, task, split, ahead, scratch),
        }
    }
}

by_level! {
    /// Attend. Keys and values of every position up to each token's own are in the cache.
    ///
    /// With a split, only its positions are looked at, and what the rows have seen goes to the pointer
    /// ([`partial_floats`] a row) instead of the output: see [`combine`].
    ///
    /// The chunk `ahead`, which the caller wants next, is fetched meanwhile.
    ///
    /// # Safety
    /// The machine has the level; `q` and `out` have the extent that `task` names, and nobody else
    /// uses `out` (or the partials' room) or writes the blocks read here.
    pub unsafe fn attend(kv: &KvCache, task: &Task<'_>, split: Option<(usize, *mut f32)>, ahead: &Tiles, scratch: &mut Scratch) = attend_body;
}

#[inline(always)]
unsafe fn combine_body<L: Lanes>(
    task: &Task<'_>,
    head_dim: usize,
    partials: *const f32,
    split_stride: usize,
    scratch: &mut Scratch,
) {
    let stride = head_dim.next_multiple_of(LANES);
    let each = partial_floats(head_dim);
    scratch.total.reset(task.rows(), stride);
    for row in 0..task.rows() {
        let splits = task.position(row / task.heads) / SPLIT + 1;
        // SAFETY: every split's partials are there, and the output: the caller's promise.
        unsafe {
            for split in 0..splits {
                let from = partials.add(split * split_stride + row * each);
                let partial = std::slice::from_raw_parts(from, each);
                let sums = partial[LANES..2 * LANES]
                    .try_into()
                    .expect("a vector of sums");
                scratch
                    .total
                    .merge::<L>(row, partial[0], sums, &partial[2 * LANES..]);
            }
            let out = task.out.add(task.offsets(row, head_dim).1);
            finish::<L>(&scratch.total, row, head_dim, out);
        }
    }
}

by_level! {
    /// Join a task's splits, in order, and write the result. The splits' partials stand `split_stride` floats
    /// apart.
    ///
    /// # Safety
    /// As [`attend`]; every split of the task is complete.
    pub unsafe fn combine(task: &Task<'_>, head_dim: usize, partials: *const f32, split_stride: usize, scratch: &mut Scratch) = combine_body;
}
