//! The attention kernel. Hot path.
//!
//! Scores are sums over dimensions of `query · key`, sixteen positions a vector; values are sums over
//! positions of `weight · value`, sixteen dimensions a vector. Both are blocked the same way: some rows
//! times some vectors of accumulators, so that every key and value loaded serves several rows and every
//! query and weight several vectors. Many rows have a chunk widened to floats once for all of them.

use super::softmax::weigh;
use super::state::{Scratch, State};
use super::{CHUNK, MAX_ROWS, SPLIT, Segment};
use crate::kv_cache::{KvCache, KvDtype};
use crate::simd::{LANES, Lanes, by_level, prefetch_line};

/// Tiles of sixteen positions in a chunk.
const TILES: usize = CHUNK / LANES;

/// From so many rows on a chunk is widened first.
const WIDEN_ROWS: usize = 12;

/// Queries of some tokens and of some heads that share a KV head.
///
/// Rows stand token by token, `heads` for each.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    pub layer: usize,
    pub kv_head: usize,
    /// First query head.
    pub head: usize,
    /// Tokens times heads is at most [`MAX_ROWS`].
    pub heads: usize,
    /// 0: everything up to the own position; n: the last n positions, the own one included.
    pub window: usize,
    /// Multiplied into every score.
    pub scale: f32,
    /// Flat indices of the tokens.
    pub tokens: &'a [u32],
    /// Position of every flat token.
    pub positions: &'a [i32],
    /// Who reads what; each token's chunks in order and up to its own position.
    pub segments: &'a [Segment],
    /// Block tables of all sequences, `table_width` entries each.
    pub tables: &'a [i32],
    pub table_width: usize,
    /// First head of flat token 0: `[tokens, q_token_stride]`, heads `q_head_stride` apart.
    pub q: *const f32,
    pub q_token_stride: usize,
    pub q_head_stride: usize,
    /// As for `q`; heads are `head_dim` apart.
    pub out: *mut f32,
    pub out_token_stride: usize,
}

impl Task<'_> {
    fn rows(&self) -> usize {
        self.tokens.len() * self.heads
    }

    fn position(&self, token: usize) -> usize {
        self.positions[self.tokens[token] as usize] as usize
    }

    /// The first position that one sees.
    fn first_visible(&self, position: usize) -> usize {
        match self.window {
            0 => 0,
            window => (position + 1).saturating_sub(window),
        }
    }

    /// Block and slot of a position of the sequence that `segment` names.
    fn slot(&self, segment: &Segment, position: usize, block_size: usize) -> (usize, usize) {
        let table = &self.tables[segment.table as usize * self.table_width..][..self.table_width];
        (table[position / block_size] as usize, position % block_size)
    }

    /// The key tiles from position `start` on; null behind what `segment` reads.
    fn keys(&self, kv: &KvCache, segment: &Segment, start: usize) -> Ahead {
        let block_size = kv.shape().block_size;
        let last = segment
            .tokens
            .clone()
            .map(|token| self.position(token as usize))
            .max();
        std::array::from_fn(|tile| {
            let position = start + tile * LANES;
            if last.is_none_or(|last| position > last) {
                return std::ptr::null();
            }
            let (block, slot) = self.slot(segment, position, block_size);
            kv.key_tile(self.layer, block, self.kv_head, slot)
        })
    }

    /// The key tiles that this task begins with.
    pub fn first_keys(&self, kv: &KvCache) -> Ahead {
        match self.segments.first() {
            Some(segment) if self.window == 0 => {
                self.keys(kv, segment, segment.chunks.start as usize * CHUNK)
            }
            _ => NOTHING_AHEAD,
        }
    }

    /// Where row `row` reads and writes, as offsets from `q` and `out`.
    fn offsets(&self, row: usize, head_dim: usize) -> (usize, usize) {
        let token = self.tokens[row / self.heads] as usize;
        let head = self.head + row % self.heads;
        (
            token * self.q_token_stride + head * self.q_head_stride,
            token * self.out_token_stride + head * head_dim,
        )
    }
}

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

/// Key tiles to be fetched into the cache: those of the chunk that comes next.
pub type Ahead = [*const u8; TILES];

/// Nothing to be fetched.
pub const NOTHING_AHEAD: Ahead = [std::ptr::null(); TILES];

/// Where a chunk's keys and values stand, tile by tile.
///
/// Tiles that hold no position repeat the first one: they may be read, and what comes of them is masked.
#[derive(Clone, Copy)]
struct Chunk {
    keys: [*const u8; TILES],
    values: [*const u8; TILES],
    /// Scales of the tokens' keys and values; null where elements are what they say.
    key_scales: [*const f32; TILES],
    value_scales: [*const f32; TILES],
    /// Keys that are wanted next, or nulls.
    ahead: Ahead,
    /// Whether its values may have to be fetched.
    cold: bool,
    /// Positions that somebody sees.
    tokens: usize,
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
    prefetch: bool,
    weights: &mut [[f32; CHUNK]],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[L::splat(0.0); COUNT]; ROWS];
        for dim in 0..chunk.head_dim {
            let offset = dim * LANES * E::BYTES;
            if prefetch && offset.is_multiple_of(64) {
                for tile in 0..COUNT {
                    prefetch_line(chunk.values[first_tile + tile].wrapping_add(offset));
                }
            }
            let mut keys = [L::splat(0.0); COUNT];
            for (tile, key) in keys.iter_mut().enumerate() {
                *key = E::load(chunk.keys[first_tile + tile].add(offset));
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let q = L::splat(*q.add(row * q_stride + dim));
                for (sum, key) in sums.iter_mut().zip(keys) {
                    *sum = q.mul_add(key, *sum);
                }
            }
        }
        for (sums, weights) in sums.into_iter().zip(weights) {
            for (tile, sum) in sums.into_iter().enumerate() {
                let mut sum = sum.mul(L::splat(chunk.factor));
                let scales = chunk.key_scales[first_tile + tile];
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
    prefetch: bool,
    weights: &[[f32; CHUNK]],
    acc: &mut [f32],
) {
    let stride = chunk.value_stride;
    let key_bytes = chunk.head_dim * E::BYTES;
    // SAFETY: the caller's promise.
    unsafe {
        let mut lanes = [[L::splat(0.0); DIMS]; ROWS];
        for (row, lanes) in lanes.iter_mut().enumerate() {
            for (at, lane) in lanes.iter_mut().enumerate() {
                *lane = L::load(acc.as_ptr().add(row * stride + dim + at * LANES));
            }
        }
        let weights = weights.as_ptr().cast::<f32>();
        for token in 0..chunk.tokens {
            if prefetch {
                // As many bytes of the tile as a token has in it.
                let tile = chunk.ahead[token / LANES].wrapping_add(token % LANES * key_bytes);
                for line in (0..key_bytes).step_by(64) {
                    prefetch_line(tile.wrapping_add(line));
                }
            }
            let from = chunk.values[token / LANES];
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
    scratch: &mut Scratch,
) {
    let tiles = chunk.tokens.div_ceil(LANES);
    let stride = chunk.value_stride;
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
            // Values are fetched while the first rows' scores are computed.
            let prefetch = chunk.cold && row == from;
            let (left, q) = (to - row, q.0.as_ptr().add(row * stride));
            let weights = &mut weights.0[row..];
            let mut step = 0;
            let mut tile = 0;
            while tile < tiles {
                if L::WIDE && tiles - tile > 2 {
                    step = next_rows!(L, left, scores::<L, E; 4>(chunk, tile, q, stride, prefetch, weights));
                    tile += 4;
                } else {
                    step = next_rows!(L, left, scores::<L, E; 2>(chunk, tile, q, stride, prefetch, weights));
                    tile += 2;
                }
            }
            row += step;
        }
        for row in from..to {
            let position = task.position(row / task.heads);
            // Visible positions of the chunk: [first, end). Slots behind `end` may hold anything.
            let first = task
                .first_visible(position)
                .saturating_sub(start)
                .min(CHUNK);
            let end = (position + 1).saturating_sub(start).min(CHUNK);
            let weights = &mut weights.0[row];
            weights[..first].fill(f32::NEG_INFINITY);
            if end < tiles * LANES {
                weights[end..tiles * LANES].fill(f32::NEG_INFINITY);
            }
            let (mut max, mut sums) = (current.max[row], *current.sums(row));
            let factor = weigh::<L>(weights, tiles, &mut max, &mut sums);
            for (tile, &scales) in chunk.value_scales.iter().enumerate().take(tiles) {
                if !scales.is_null() {
                    let at = weights.as_mut_ptr().add(tile * LANES);
                    L::load(at).mul(L::load(scales)).store(at);
                }
            }
            current.max[row] = max;
            *current.sums_mut(row) = sums;
            if factor != 1.0 {
                let factor = L::splat(factor);
                for acc in current.acc_from(row)[..stride].chunks_exact_mut(LANES) {
                    L::load(acc.as_ptr()).mul(factor).store(acc.as_mut_ptr());
                }
            }
        }
        let mut row = from;
        while row < to {
            let left = to - row;
            let (weights, acc) = (&weights.0[row..], current.acc_from(row));
            let fetch = row == from && !chunk.ahead[0].is_null();
            let mut step = 0;
            let mut dim = 0;
            while dim < stride {
                if L::WIDE && stride - dim >= 4 * LANES {
                    step = next_rows!(L, left, add_values::<L, E; 4>(chunk, dim, fetch && dim == 0, weights, acc));
                    dim += 4 * LANES;
                } else if stride - dim >= 2 * LANES {
                    step = next_rows!(L, left, add_values::<L, E; 2>(chunk, dim, fetch && dim == 0, weights, acc));
                    dim += 2 * LANES;
                } else {
                    step = next_rows!(L, left, add_values::<L, E; 1>(chunk, dim, fetch && dim == 0, weights, acc));
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
) -> Chunk {
    let (dim, stride) = (chunk.head_dim, chunk.value_stride);
    let mut wide = Chunk {
        ahead: NOTHING_AHEAD,
        cold: false,
        ..*chunk
    };
    assert!(keys.len() >= CHUNK * dim && values.len() >= CHUNK * stride);
    // SAFETY: tiles of sixteen times the dimensions, inside both by the check.
    unsafe {
        for tile in 0..chunk.tokens.div_ceil(LANES) {
            let to = keys.as_mut_ptr().add(tile * LANES * dim);
            for at in 0..dim {
                if at.is_multiple_of(64 / LANES / E::BYTES) && !chunk.ahead[tile].is_null() {
                    prefetch_line(chunk.ahead[tile].wrapping_add(at * LANES * E::BYTES));
                }
                let key: L = E::load(chunk.keys[tile].add(at * LANES * E::BYTES));
                key.store(to.add(at * LANES));
            }
            wide.keys[tile] = to.cast_const().cast();
            let to = values.as_mut_ptr().add(tile * LANES * stride);
            let tokens = LANES.min(chunk.tokens - tile * LANES);
            for at in (0..tokens * stride).step_by(LANES) {
                let value: L = E::load(chunk.values[tile].add(at * E::BYTES));
                value.store(to.add(at));
            }
            wide.values[tile] = to.cast_const().cast();
        }
        for tile in chunk.tokens.div_ceil(LANES)..TILES {
            wide.keys[tile] = wide.keys[0];
            wide.values[tile] = wide.values[0];
        }
    }
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
    ahead: Ahead,
    scratch: &mut Scratch,
) {
    let (head_dim, block_size) = (kv.shape().head_dim, kv.shape().block_size);
    let (rows, stride) = (task.rows(), kv.value_stride());
    assert!(rows <= MAX_ROWS && rows > 0);
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
    for (number, segment) in task.segments.iter().enumerate() {
        let tokens = segment.tokens.start as usize..segment.tokens.end as usize;
        let (from, to) = (tokens.start * task.heads, tokens.end * task.heads);
        let (mut earliest, mut latest) = (usize::MAX, 0);
        for token in tokens {
            earliest = earliest.min(task.position(token));
            latest = latest.max(task.position(token));
        }
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
            let visible = CHUNK.min((latest + 1).saturating_sub(start));
            if visible == 0 {
                break;
            }
            let next = if index + 1 < chunks.end && start + CHUNK <= latest {
                task.keys(kv, segment, start + CHUNK)
            } else {
                match task.segments.get(number + 1) {
                    Some(next) if split.is_none() => {
                        task.keys(kv, next, next.chunks.start as usize * CHUNK)
                    }
                    _ => ahead,
                }
            };
            let mut chunk = Chunk {
                keys: task.keys(kv, segment, start),
                values: [std::ptr::null(); TILES],
                key_scales: [std::ptr::null(); TILES],
                value_scales: [std::ptr::null(); TILES],
                ahead: next,
                cold: true,
                tokens: visible,
                value_stride: stride,
                head_dim,
                factor,
            };
            for tile in 0..TILES {
                // Tiles without a position repeat the first one.
                let at = if tile * LANES < visible {
                    tile * LANES
                } else {
                    0
                };
                if at == 0 {
                    chunk.keys[tile] = chunk.keys[0];
                }
                let (block, slot) = task.slot(segment, start + at, block_size);
                let (layer, kv_head) = (task.layer, task.kv_head);
                chunk.values[tile] = kv.value(layer, block, kv_head, slot);
                chunk.key_scales[tile] = kv.key_scales(layer, block, kv_head, slot);
                chunk.value_scales[tile] = kv.value_scales(layer, block, kv_head, slot);
            }
            // SAFETY: tiles, queries and state are valid; the instructions are the caller's promise.
            unsafe {
                if E::BYTES < 4 && to - from >= WIDEN_ROWS {
                    let keys = &mut scratch.wide_keys.0;
                    let chunk = widen::<L, E>(&chunk, keys, &mut scratch.wide_values.0);
                    advance::<L, F32>(task, &chunk, start, (from, to), scratch);
                } else {
                    advance::<L, E>(task, &chunk, start, (from, to), scratch);
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
    ahead: Ahead,
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
    /// Key tiles `ahead`, which the caller wants next, are fetched meanwhile.
    ///
    /// # Safety
    /// The machine has the level; `q` and `out` have the extent that `task` names, and nobody else
    /// uses `out` (or the partials' room) or writes the blocks read here.
    pub unsafe fn attend(kv: &KvCache, task: &Task<'_>, split: Option<(usize, *mut f32)>, ahead: Ahead, scratch: &mut Scratch) = attend_body;
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
