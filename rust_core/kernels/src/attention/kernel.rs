//! The attention kernel. Hot path.
//!
//! Flash attention on the CPU: for each chunk of a task, scores, online softmax, and weighted values. [`Element`] is the
//! arithmetic of one KV cache type.

use super::float::{F16, F32};
use super::integer::Int8;
use super::prefetch::{Prefetcher, Tiles};
use super::softmax::softmax_chunk;
use super::state::{Scratch, State};
use super::task::Task;
use super::visible::Visible;
use super::{CHUNK, SPLIT};
use crate::dispatch::Level;
use crate::kv_cache::{KvCache, KvDtype, TileLayout};
use crate::simd::{Int8Dot, LANES, Lanes, by_level};

/// A chunk's keys and values, and their layout.
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

/// Arithmetic over keys and values of one type.
///
/// # Safety
/// Rows `rows.0..rows.1` of the task have queries and state in `scratch`; the chunk is valid for the type; the level's
/// instructions are enabled.
#[allow(clippy::missing_safety_doc, reason = "the trait's is every method's")]
pub(super) trait Element {
    /// Dimensions of keys, or tokens of values, between two prefetches.
    const PREFETCH_STEP: usize;

    /// Convert `rows` queries, rows of `scratch.q` that are `stride` apart, to the form that `scores` takes.
    #[inline(always)]
    unsafe fn prepare_queries<L: Int8Dot>(_rows: usize, _stride: usize, _scratch: &mut Scratch) {}

    /// Accumulate one chunk into the state of some rows.
    #[inline(always)]
    unsafe fn accumulate<L: Int8Dot>(
        task: &Task<'_>,
        chunk: &Chunk,
        rows: (usize, usize),
        prefetcher: Prefetcher,
        scratch: &mut Scratch,
    ) {
        // SAFETY: the same contract.
        unsafe { accumulate_chunk::<L, Self>(task, chunk, rows, prefetcher, scratch) }
    }

    /// Write base-2 scores to `scratch.probs`. Prefetches `lines` lines for every [`Element::PREFETCH_STEP`] dimensions
    /// of the first rows.
    unsafe fn scores<L: Int8Dot>(
        chunk: &Chunk,
        rows: (usize, usize),
        prefetcher: &mut Prefetcher,
        lines: usize,
        scratch: &mut Scratch,
    );

    /// Add values, weighted by `scratch.probs`, to the rows' state, both times their `scratch.factors`. Prefetches
    /// `lines` lines for every [`Element::PREFETCH_STEP`] tokens of the first rows.
    unsafe fn add_values<L: Int8Dot>(
        task: &Task<'_>,
        chunk: &Chunk,
        rows: (usize, usize),
        prefetcher: &mut Prefetcher,
        lines: usize,
        scratch: &mut Scratch,
    );
}

/// Accumulate one chunk into rows `from..to`: scores, softmax, values.
///
/// # Safety
/// As [`Element`].
#[inline(always)]
pub(super) unsafe fn accumulate_chunk<L: Int8Dot, E: Element + ?Sized>(
    task: &Task<'_>,
    chunk: &Chunk,
    (from, to): (usize, usize),
    mut prefetcher: Prefetcher,
    scratch: &mut Scratch,
) {
    let tiles = chunk.tiles.count();
    // Spread over the first rows' scores and values.
    let turns = chunk.head_dim.div_ceil(E::PREFETCH_STEP)
        + chunk.tiles.positions.div_ceil(E::PREFETCH_STEP);
    let lines = prefetcher.total.div_ceil(turns);
    // SAFETY: the caller's promise.
    unsafe {
        E::scores::<L>(chunk, (from, to), &mut prefetcher, lines, scratch);
        let probs = &mut scratch.probs.0;
        for token in from / task.heads..to / task.heads {
            let visible = task.visible(token, chunk.start);
            if !visible.covers(tiles) {
                let rows = &mut probs[token * task.heads..][..task.heads];
                mask::<L>(visible, tiles, rows);
            }
        }
        for first in (from..to).step_by(LANES) {
            let rows = &mut probs[first..to.min(first + LANES)];
            let (state, factors) = (&mut scratch.current, &mut scratch.factors);
            softmax_chunk::<L>(rows, tiles, state, factors, first);
        }
        E::add_values::<L>(task, chunk, (from, to), &mut prefetcher, lines, scratch);
    }
}

/// Set the scores of positions that a token does not see to -inf.
///
/// # Safety
/// At most `CHUNK / 16` tiles; the level's instructions are enabled.
#[inline(always)]
unsafe fn mask<L: Lanes>(visible: Visible, tiles: usize, rows: &mut [[f32; CHUNK]]) {
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

/// Merge the current split of rows `from..to` into their total, and reset it.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn merge_split<L: Lanes>(
    (from, to): (usize, usize),
    current: &mut State,
    total: &mut State,
) {
    for row in from..to {
        let (max, sums) = (current.max[row], *current.sums(row));
        // SAFETY: the caller's promise.
        unsafe { total.merge::<L>(row, max, &sums, current.acc(row)) };
    }
    current.clear(from..to);
}

/// Normalize a row's accumulator and write it to `out`.
///
/// # Safety
/// `head_dim` floats at `out`; the level's instructions enabled.
#[inline(always)]
unsafe fn write_output<L: Lanes>(state: &State, row: usize, head_dim: usize, out: *mut f32) {
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

/// Write a query times `factor`, padded with zeros.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn scale_query<L: Lanes>(query: &[f32], factor: f32, to: &mut [f32]) {
    let (to, padding) = to.split_at_mut(query.len());
    padding.fill(0.0);
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
            task.prefetch_output(row, head_dim);
        }
        // SAFETY: the queries' extent and the instructions are the caller's promise.
        unsafe {
            let query = task.q.add(task.offsets(row, 0).0);
            let query = std::slice::from_raw_parts(query, head_dim);
            scale_query::<L>(query, factor, &mut scratch.q.0[row * stride..][..stride]);
        }
    }
    // SAFETY: the instructions are the caller's promise.
    unsafe { E::prepare_queries::<L>(rows, stride, scratch) };
    scratch.current.reset(rows, stride);
    let range = match split {
        Some((split, _)) => split * (SPLIT / CHUNK)..(split + 1) * (SPLIT / CHUNK),
        None => 0..usize::MAX,
    };
    let ahead_tiles = ahead.map_or(Tiles::NONE, |ahead| ahead.first_tiles(kv));
    let mut has_total = false;
    // The next chunk, once it is known.
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
                if !has_total {
                    scratch.total.reset(rows, stride);
                }
                has_total = true;
                // SAFETY: the instructions are the caller's promise.
                unsafe { merge_split::<L>((from, to), &mut scratch.current, &mut scratch.total) };
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
            let prefetcher = Prefetcher::new(next);
            let chunk = Chunk {
                tiles,
                layout,
                value_stride: stride,
                head_dim,
                start,
            };
            // SAFETY: tiles, queries and state are valid; the instructions are the caller's promise.
            unsafe {
                E::accumulate::<L>(task, &chunk, (from, to), prefetcher, scratch);
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
            ahead.prefetch_query(row, head_dim);
        }
        // SAFETY: the output's extent and the instructions are the caller's promise.
        unsafe {
            let out = task.out.add(task.offsets(row, head_dim).1);
            if has_total {
                merge_split::<L>((row, row + 1), &mut scratch.current, &mut scratch.total);
                write_output::<L>(&scratch.total, row, head_dim, out);
            } else {
                // Merging it into an empty total would give the same bits.
                write_output::<L>(&scratch.current, row, head_dim, out);
            }
        }
    }
}

/// Floats of a row's partial result of a split: maximum, sums, weighted values.
pub const fn partial_floats(head_dim: usize) -> usize {
    2 * LANES + head_dim.next_multiple_of(LANES)
}

/// A function for each type of elements, because the compiler's time grows faster than the size of a function.
macro_rules! attend_elements {
    ($name:ident, $body:ident, $element:ty) => {
        /// # Safety
        /// As [`attend`]; the level's instructions enabled.
        #[inline(always)]
        unsafe fn $body<L: Int8Dot>(
            kv: &KvCache,
            task: &Task<'_>,
            split: Option<(usize, *mut f32)>,
            ahead: Option<&Task<'_>>,
            scratch: &mut Scratch,
        ) {
            // SAFETY: the caller's promise.
            unsafe { attend_element::<L, $element>(kv, task, split, ahead, scratch) }
        }

        by_level! {
            /// [`attend`] over one type of elements.
            ///
            /// # Safety
            /// As there; the cache holds such elements.
            unsafe fn $name(kv: &KvCache, task: &Task<'_>, split: Option<(usize, *mut f32)>, ahead: Option<&Task<'_>>, scratch: &mut Scratch) = $body with AvxVnni;
        }
    };
}

attend_elements!(attend_f16, attend_f16_body, F16);
attend_elements!(attend_f32, attend_f32_body, F32);
attend_elements!(attend_int8, attend_int8_body, Int8);

/// Compute a task's attention. Keys and values of every position up to each token's own are in the cache.
///
/// With a split, only its positions are read, and the rows' partial results ([`partial_floats`] a row) are written to
/// the pointer instead of the output: see [`combine`].
///
/// Prefetches the first keys, values and queries of the task `ahead`, which the caller computes next.
///
/// # Safety
/// The machine has the level; `q` and `out` have the extent that `task` says, and no other thread uses `out` (or the
/// partial results) or writes the blocks read here.
pub unsafe fn attend(
    level: Level,
    kv: &KvCache,
    task: &Task<'_>,
    split: Option<(usize, *mut f32)>,
    ahead: Option<&Task<'_>>,
    scratch: &mut Scratch,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match kv.shape().dtype {
            KvDtype::F16 => attend_f16(level, kv, task, split, ahead, scratch),
            KvDtype::F32 => attend_f32(level, kv, task, split, ahead, scratch),
            KvDtype::Int8 => attend_int8(level, kv, task, split, ahead, scratch),
        }
    }
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
            write_output::<L>(&scratch.total, row, head_dim, out);
        }
    }
}

by_level! {
    /// Merge the partial results of a task's splits, in order, and write the output. The splits are `split_stride` floats
    /// apart.
    ///
    /// # Safety
    /// As [`attend`]; every split of the task is complete.
    pub unsafe fn combine(task: &Task<'_>, head_dim: usize, partials: *const f32, split_stride: usize, scratch: &mut Scratch) = combine_body;
}
