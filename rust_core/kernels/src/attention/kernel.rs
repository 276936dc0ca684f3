//! The attention kernel. Hot path.
//!
//! Flash attention on the CPU: for each chunk of a task, scores, online softmax, and weighted values. [`Element`] is the
//! arithmetic of one KV cache type.

use super::float::{F16, F32};
use super::integer::Int8;
use super::prefetch::{Prefetcher, Tiles};
use super::softcap::Softcap;
use super::softmax::softmax_chunk;
use super::state::{Scratch, State};
use super::task::Task;
use super::visible::Visible;
use super::{CHUNK, SPLIT};
use crate::dispatch::Level;
use crate::kv_cache::{KvDtype, TileLayout};
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
        if let Some(softcap) = Softcap::of(task) {
            softcap.apply::<L>(tiles, &mut probs[from..to]);
        }
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

/// Normalize a row's accumulator and write it to the task's output.
///
/// # Safety
/// The output's extent is what the task says; the level's instructions enabled.
#[inline(always)]
unsafe fn write_output<L: Lanes>(task: &Task<'_>, state: &State, row: usize) {
    let head_dim = task.kv.head_dim;
    // SAFETY: whole vectors below `head_dim`, then the rest one by one.
    unsafe {
        let out = task.out.add(task.offsets(row, head_dim).1);
        let sum = L::load(state.sums(row).as_ptr()).sum();
        let inverse = match task.sink(row) {
            None => 1.0 / sum,
            Some(sink) => inverse_with_sink::<L>(state.max[row], sum, sink),
        };
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

/// What normalizes a row whose probabilities, relative to `2^max`, add up to `sum`, and whose sink has the base-2 score
/// `sink`: the sink is merged like the state of a position without a value.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn inverse_with_sink<L: Lanes>(max: f32, sum: f32, sink: f32) -> f32 {
    let largest = if sink > max { sink } else { max };
    // SAFETY: the caller's promise.
    let [row, sink, ..] = unsafe {
        let mut scores = [0.0; LANES];
        [scores[0], scores[1]] = [max - largest, sink - largest];
        L::load(scores.as_ptr()).exp2().to_array()
    };
    row / (sum * row + sink)
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
/// As there; the layer holds such elements; the level's instructions enabled.
#[inline(always)]
unsafe fn attend_element<L: Int8Dot, E: Element>(
    task: &Task<'_>,
    split: Option<(usize, *mut f32)>,
    ahead: Option<&Task<'_>>,
    scratch: &mut Scratch,
) {
    let (head_dim, layout) = (task.kv.head_dim, *task.kv.tile_layout());
    let (rows, stride) = (task.rows(), task.kv.value_stride());
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
    let ahead_tiles = ahead.map_or(Tiles::NONE, Task::first_tiles);
    let mut has_total = false;
    // The next chunk, once it is known.
    let mut upcoming = None;
    for (number, segment) in task.segments.iter().enumerate() {
        let (from, to) = (
            segment.tokens.start as usize * task.heads,
            segment.tokens.end as usize * task.heads,
        );
        let (earliest, latest) = task.span(segment);
        let chunks = task.visible_chunks(segment, earliest);
        let chunks = range.start.max(chunks.start)..range.end.min(chunks.end);
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
            if start > latest {
                break;
            }
            let tiles = upcoming
                .take()
                .unwrap_or_else(|| task.tiles(segment, start, latest));
            let next = if index + 1 < chunks.end && start + CHUNK <= latest {
                upcoming.insert(task.tiles(segment, start + CHUNK, latest))
            } else {
                let next = task.segments.get(number + 1);
                upcoming = next
                    .filter(|_| split.is_none())
                    .and_then(|next| task.first_tiles_of(next));
                upcoming.as_ref().unwrap_or(&ahead_tiles)
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
            if has_total {
                merge_split::<L>((row, row + 1), &mut scratch.current, &mut scratch.total);
                write_output::<L>(task, &scratch.total, row);
            } else {
                // Merging it into an empty total would give the same bits.
                write_output::<L>(task, &scratch.current, row);
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
            task: &Task<'_>,
            split: Option<(usize, *mut f32)>,
            ahead: Option<&Task<'_>>,
            scratch: &mut Scratch,
        ) {
            // SAFETY: the caller's promise.
            unsafe { attend_element::<L, $element>(task, split, ahead, scratch) }
        }

        by_level! {
            /// [`attend`] over one type of elements.
            ///
            /// # Safety
            /// As there; the layer holds such elements.
            unsafe fn $name(task: &Task<'_>, split: Option<(usize, *mut f32)>, ahead: Option<&Task<'_>>, scratch: &mut Scratch) = $body with AvxVnni;
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
    task: &Task<'_>,
    split: Option<(usize, *mut f32)>,
    ahead: Option<&Task<'_>>,
    scratch: &mut Scratch,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match task.kv.dtype {
            KvDtype::F16 => attend_f16(level, task, split, ahead, scratch),
            KvDtype::F32 => attend_f32(level, task, split, ahead, scratch),
            KvDtype::Int8 => attend_int8(level, task, split, ahead, scratch),
        }
    }
}

/// # Safety
/// As [`combine`]; the level's instructions enabled.
#[inline(always)]
unsafe fn combine_body<L: Lanes>(
    task: &Task<'_>,
    partials: *const f32,
    split_stride: usize,
    scratch: &mut Scratch,
) {
    let each = partial_floats(task.kv.head_dim);
    scratch.total.reset(task.rows(), task.kv.value_stride());
    for row in 0..task.rows() {
        let position = task.position(row / task.heads);
        let splits = task.first_visible(position) / SPLIT..=position / SPLIT;
        // SAFETY: every split's partials are there, and the output: the caller's promise.
        unsafe {
            for split in splits {
                let from = partials.add(split * split_stride + row * each);
                let partial = std::slice::from_raw_parts(from, each);
                let sums = partial[LANES..2 * LANES]
                    .try_into()
                    .expect("a vector of sums");
                scratch
                    .total
                    .merge::<L>(row, partial[0], sums, &partial[2 * LANES..]);
            }
            write_output::<L>(task, &scratch.total, row);
        }
    }
}

by_level! {
    /// Merge the partial results of a task's splits, in order, and write the output. The splits are `split_stride` floats
    /// apart.
    ///
    /// # Safety
    /// As [`attend`]; every split that a row of the task sees a part of is complete.
    pub unsafe fn combine(task: &Task<'_>, partials: *const f32, split_stride: usize, scratch: &mut Scratch) = combine_body;
}
