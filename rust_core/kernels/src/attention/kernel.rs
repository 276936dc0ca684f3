//! The attention kernel. Hot path.
//!
//! A task's rows meet its chunks one by one: scores, weights by a running softmax, weighted values. How keys and values
//! are multiplied with is their type's business ([`Element`]).

use super::fetch::{Fetch, Tiles};
use super::float::{F16, F32};
use super::integer::Int8;
use super::softmax::weigh;
use super::state::{Scratch, State};
use super::task::Task;
use super::visible::Visible;
use super::{CHUNK, SPLIT};
use crate::kv_cache::{KvCache, KvDtype, TileLayout};
use crate::simd::{Int8Dot, LANES, Lanes, by_level};

/// A chunk's keys and values, and how to use them.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub tiles: Tiles,
    pub layout: TileLayout,
    /// Elements from one position's value to the next.
    pub value_stride: usize,
    pub head_dim: usize,
    /// Its first position.
    pub start: usize,
}

/// How keys and values of one type are multiplied with.
///
/// # Safety
/// Rows `rows.0..rows.1` of the task have queries and state in `scratch`; the chunk is valid for the type; the level's
/// instructions are enabled.
#[allow(clippy::missing_safety_doc, reason = "the trait's is every method's")]
pub(super) trait Element {
    /// Dimensions of keys, or tokens of values, between two looks at what is to be fetched.
    const TURN: usize;

    /// Bring `rows` queries, rows of `scratch.q` that are `stride` apart, into the form that scores take.
    #[inline(always)]
    unsafe fn take_queries<L: Int8Dot>(_rows: usize, _stride: usize, _scratch: &mut Scratch) {}

    /// One chunk for some rows.
    #[inline(always)]
    unsafe fn meet<L: Int8Dot>(
        task: &Task<'_>,
        chunk: &Chunk,
        rows: (usize, usize),
        fetch: Fetch,
        scratch: &mut Scratch,
    ) {
        // SAFETY: the same contract.
        unsafe { advance::<L, Self>(task, chunk, rows, fetch, scratch) }
    }

    /// Scores, of base 2, into `scratch.weights`. Every [`Element::TURN`] dimensions of the first rows `lines` lines are fetched.
    unsafe fn scores<L: Int8Dot>(
        chunk: &Chunk,
        rows: (usize, usize),
        fetch: &mut Fetch,
        lines: usize,
        scratch: &mut Scratch,
    );

    /// Add values, weighted by `scratch.weights`, to the rows' state, both times their `scratch.factors`. Every
    /// [`Element::TURN`] tokens of the first rows `lines` lines are fetched.
    unsafe fn add_values<L: Int8Dot>(
        task: &Task<'_>,
        chunk: &Chunk,
        rows: (usize, usize),
        fetch: &mut Fetch,
        lines: usize,
        scratch: &mut Scratch,
    );
}

/// One chunk for rows `from..to`: scores, weights, values.
///
/// # Safety
/// As [`Element`].
#[inline(always)]
pub(super) unsafe fn advance<L: Int8Dot, E: Element + ?Sized>(
    task: &Task<'_>,
    chunk: &Chunk,
    (from, to): (usize, usize),
    mut fetch: Fetch,
    scratch: &mut Scratch,
) {
    let tiles = chunk.tiles.count();
    // Spread over the first rows' scores and values.
    let turns = chunk.head_dim.div_ceil(E::TURN) + chunk.tiles.positions.div_ceil(E::TURN);
    let lines = fetch.total.div_ceil(turns);
    // SAFETY: the caller's promise.
    unsafe {
        E::scores::<L>(chunk, (from, to), &mut fetch, lines, scratch);
        let weights = &mut scratch.weights.0;
        for token in from / task.heads..to / task.heads {
            let visible = task.visible(token, chunk.start);
            if !visible.covers(tiles) {
                let rows = &mut weights[token * task.heads..][..task.heads];
                hide::<L>(visible, tiles, rows);
            }
        }
        for first in (from..to).step_by(LANES) {
            let rows = &mut weights[first..to.min(first + LANES)];
            let (state, factors) = (&mut scratch.current, &mut scratch.factors);
            weigh::<L>(rows, tiles, state, factors, first);
        }
        E::add_values::<L>(task, chunk, (from, to), &mut fetch, lines, scratch);
    }
}

/// Let nothing come of the scores of what a token does not see.
///
/// # Safety
/// At most `CHUNK / 16` tiles; the level's instructions are enabled.
#[inline(always)]
unsafe fn hide<L: Lanes>(visible: Visible, tiles: usize, rows: &mut [[f32; CHUNK]]) {
    for scores in rows {
        for (tile, scores) in scores.as_chunks_mut().0[..tiles].iter_mut().enumerate() {
            let scores: &mut [f32; LANES] = scores;
            // SAFETY: sixteen scores; the instructions are the caller's promise.
            unsafe {
                let hidden = L::splat(f32::NEG_INFINITY);
                let seen = visible.select(tile, L::load(scores.as_ptr()), hidden);
                seen.store(scores.as_mut_ptr());
            }
        }
    }
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
    }
    current.clear(from..to);
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
        for (at, acc) in acc[..head_dim].iter().enumerate().skip(whole) {
            *out.add(at) = acc * inverse;
        }
    }
}

/// A query times `factor`, with zeros behind it.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn scale<L: Lanes>(query: &[f32], factor: f32, to: &mut [f32]) {
    let (to, behind) = to.split_at_mut(query.len());
    behind.fill(0.0);
    let (vectors, rest) = query.as_chunks::<LANES>();
    let (to, to_rest) = to.as_chunks_mut::<LANES>();
    for (x, to) in vectors.iter().zip(to) {
        // SAFETY: sixteen elements; the instructions are the caller's promise.
        unsafe {
            let x = L::load(x.as_ptr()).mul(L::splat(factor));
            x.store(to.as_mut_ptr());
        }
    }
    for (x, to) in rest.iter().zip(to_rest) {
        *to = x * factor;
    }
}

/// [`attend`] over elements `E`.
///
/// # Safety
/// As there; the cache holds such elements; the level's instructions enabled.
#[inline(always)]
unsafe fn attend_element<L: Int8Dot, E: Element>(
    kv: &KvCache,
    task: &Task<'_>,
    split: Option<(usize, *mut f32)>,
    ahead: Option<&Task<'_>>,
    scratch: &mut Scratch,
) {
    let head_dim = kv.shape().head_dim;
    let (rows, stride) = (task.rows(), kv.value_stride());
    let layout = kv.shape().tile_layout();
    // Scores are of base 2.
    let factor = task.scale * std::f32::consts::LOG2_E;
    for row in 0..rows {
        if split.is_none() {
            task.fetch_result(row, head_dim);
        }
        // SAFETY: the queries' extent and the instructions are the caller's promise.
        unsafe {
            let query = task.q.add(task.offsets(row, 0).0);
            let query = std::slice::from_raw_parts(query, head_dim);
            scale::<L>(query, factor, &mut scratch.q.0[row * stride..][..stride]);
        }
    }
    // SAFETY: the instructions are the caller's promise.
    unsafe { E::take_queries::<L>(rows, stride, scratch) };
    scratch.current.reset(rows, stride);
    let range = match split {
        Some((split, _)) => split * (SPLIT / CHUNK)..(split + 1) * (SPLIT / CHUNK),
        None => 0..usize::MAX,
    };
    let ahead_tiles = ahead.map_or(Tiles::NONE, |ahead| ahead.first_tiles(kv));
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
                if !parted {
                    scratch.total.reset(rows, stride);
                }
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
                    _ => &ahead_tiles,
                }
            };
            let fetch = Fetch::new(next);
            let chunk = Chunk {
                tiles,
                layout,
                value_stride: stride,
                head_dim,
                start,
            };
            // SAFETY: tiles, queries and state are valid; the instructions are the caller's promise.
            unsafe {
                E::meet::<L>(task, &chunk, (from, to), fetch, scratch);
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
        if let Some(ahead) = ahead.filter(|ahead| row < ahead.rows()) {
            ahead.fetch_query(row, head_dim);
        }
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

/// # Safety
/// As [`attend`]; the level's instructions enabled.
#[inline(always)]
unsafe fn attend_body<L: Int8Dot>(
    kv: &KvCache,
    task: &Task<'_>,
    split: Option<(usize, *mut f32)>,
    ahead: Option<&Task<'_>>,
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
    /// What the task `ahead`, which the caller wants next, begins with is fetched meanwhile.
    ///
    /// # Safety
    /// The machine has the level; `q` and `out` have the extent that `task` names, and nobody else
    /// uses `out` (or the partials' room) or writes the blocks read here.
    pub unsafe fn attend(kv: &KvCache, task: &Task<'_>, split: Option<(usize, *mut f32)>, ahead: Option<&Task<'_>>, scratch: &mut Scratch) = attend_body;
}

/// # Safety
/// As [`combine`]; the level's instructions enabled.
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
