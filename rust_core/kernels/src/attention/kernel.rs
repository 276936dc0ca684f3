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
use super::{CHUNK, SPLIT};
use crate::kv_cache::{KvCache, KvDtype, TileLayout};
use crate::simd::{ByteDots, LANES, Lanes, by_level};

/// A chunk's keys and values, and how to use them.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub tiles: Tiles,
    pub layout: TileLayout,
    /// Elements from one position's value to the next.
    pub value_stride: usize,
    pub head_dim: usize,
    /// Multiplied into every score, which is of base 2.
    pub factor: f32,
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
    unsafe fn take_queries<L: ByteDots>(_rows: usize, _stride: usize, _scratch: &mut Scratch) {}

    /// One chunk, which begins at position `start`, for some rows.
    #[inline(always)]
    unsafe fn meet<L: ByteDots>(
        task: &Task<'_>,
        chunk: &Chunk,
        start: usize,
        rows: (usize, usize),
        fetch: Fetch,
        scratch: &mut Scratch,
    ) {
        // SAFETY: the same contract.
        unsafe { advance::<L, Self>(task, chunk, start, rows, fetch, scratch) }
    }

    /// Scores, of base 2, into `scratch.weights`. Every [`Element::TURN`] dimensions of the first rows `lines` lines are fetched.
    unsafe fn scores<L: ByteDots>(
        chunk: &Chunk,
        rows: (usize, usize),
        fetch: &mut Fetch,
        lines: usize,
        scratch: &mut Scratch,
    );

    /// Add values, weighted by `scratch.weights` (which may be changed), to the rows' state. Every [`Element::TURN`] tokens of the first
    /// rows `lines` lines are fetched.
    unsafe fn add_values<L: ByteDots>(
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
/// The chunk is valid for elements `E`, queries and state for the rows; the level's instructions enabled.
#[inline(always)]
pub(super) unsafe fn advance<L: ByteDots, E: Element + ?Sized>(
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
    let turns = chunk.head_dim.div_ceil(E::TURN) + chunk.tiles.positions.div_ceil(E::TURN);
    let lines = fetch.total.div_ceil(turns);
    // SAFETY: the caller's promise.
    unsafe {
        E::scores::<L>(chunk, (from, to), &mut fetch, lines, scratch);
        let Scratch {
            weights, current, ..
        } = &mut *scratch;
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
        E::add_values::<L>(chunk, (from, to), &mut fetch, lines, scratch);
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

/// [`attend`] over elements `E`.
///
/// # Safety
/// As there; the cache holds such elements; the level's instructions enabled.
#[inline(always)]
unsafe fn attend_element<L: ByteDots, E: Element>(
    kv: &KvCache,
    task: &Task<'_>,
    split: Option<(usize, *mut f32)>,
    ahead: &Tiles,
    scratch: &mut Scratch,
) {
    let head_dim = kv.shape().head_dim;
    let (rows, stride) = (task.rows(), kv.value_stride());
    let layout = kv.shape().tile_layout();
    let factor = task.scale * std::f32::consts::LOG2_E;
    for row in 0..rows {
        let (q, rest) = scratch.q.0[row * stride..][..stride].split_at_mut(head_dim);
        // SAFETY: the queries' extent is the caller's promise.
        let from =
            unsafe { std::slice::from_raw_parts(task.q.add(task.offsets(row, 0).0), head_dim) };
        q.copy_from_slice(from);
        rest.fill(0.0);
    }
    // SAFETY: the instructions are the caller's promise.
    unsafe { E::take_queries::<L>(rows, stride, scratch) };
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
                layout,
                value_stride: stride,
                head_dim,
                factor,
            };
            // SAFETY: tiles, queries and state are valid; the instructions are the caller's promise.
            unsafe {
                E::meet::<L>(task, &chunk, start, (from, to), fetch, scratch);
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

/// # Safety
/// As [`attend`]; the level's instructions enabled.
#[inline(always)]
unsafe fn attend_body<L: ByteDots>(
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
