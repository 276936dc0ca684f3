//! The first phase of a layer: queries, keys and values, head by head.
//!
//! The worker that projects a head also applies its norm and RoPE, and writes keys and values to the KV cache.

use std::ops::Range;

use super::rows_view::RowsView;
use super::{NORM_HEADS, QKV, Step, Target};
use crate::amx::row_tiles::ROWS;
use crate::gemm::Gemm;
use crate::kv_cache::{KvHead, QUAD};
use crate::norm::{rms_norm_in_place, scale_of_squares, sum_of_squares};
use crate::pool::Worker;
use crate::scratch::WorkerScratch;
use crate::simd::LANES;
use crate::spec::AttentionSpec;
use crate::weights::{AttentionWeights, LayerWeights, Linear};
use crate::work_share::{Parts, SlicedItems};

/// What a projected head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Query,
    Key,
    Value,
    /// Of the attention gate, one per query head.
    Gate,
}

/// One head of some rows, projected by one worker.
struct Item<'a> {
    role: Role,
    spec: &'a AttentionSpec,
    linear: &'a Linear,
    /// Weights of its RMS norm, if it has one.
    norm: Option<&'a [f32]>,
    /// Index among the heads of its role.
    head: usize,
    rows: Range<usize>,
}

impl Item<'_> {
    fn panels(&self) -> Range<usize> {
        let count = self.linear.matrix.segment_panels();
        self.head * count..(self.head + 1) * count
    }

    fn first_panel(&self) -> *const u8 {
        self.linear.matrix.panel(self.panels().start)
    }
}

impl Step<'_> {
    /// QKV projection: each worker projects whole heads, or with many rows slices of one.
    pub(super) fn project_qkv<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
        (spec, weights): (&AttentionSpec, &'w AttentionWeights),
    ) {
        let rows = self.tokens();
        let (q, k) = (&weights.q, weights.k.as_ref());
        // Without a matrix of their own, values are the projected keys.
        let v = weights.v.as_ref().or(k);
        let gate = weights.gate.as_ref();
        let users = [q, k.unwrap_or(q), v.unwrap_or(q), gate.unwrap_or(q)];
        let activations = self.prepare(
            worker,
            own,
            rows,
            self.hidden(layer.mixer_norm.as_ref()),
            &users,
            self.prepare_counter(index, QKV),
        );
        // SAFETY: the level was checked at load; so many rows were prepared, for these users.
        let mut gemm = unsafe { Gemm::new(self.model.level, &activations, rows, &mut own.panel) };
        // With a norm over all heads, that of one head is not applied here.
        let each = |norm: &'w Option<Vec<f32>>| norm.as_deref().filter(|_| !spec.qk_norm_whole);
        let count = |linear: Option<&Linear>, heads| if linear.is_some() { heads } else { 0 };
        let keys = count(k, spec.num_kv_heads);
        let (first_value, first_gate) = (spec.num_heads + keys, spec.num_heads + 2 * keys);
        let heads = first_gate + count(gate, spec.num_heads);
        let sliced = SlicedItems::new(heads, rows, worker.size());
        let item = |at| {
            let (unit, rows) = sliced.get(at);
            let (role, linear, norm, first) = if unit < spec.num_heads {
                (Role::Query, Some(q), each(&weights.q_norm), 0)
            } else if unit < first_value {
                (Role::Key, k, each(&weights.k_norm), spec.num_heads)
            } else if unit < first_gate {
                (Role::Value, v, weights.v_norm.as_deref(), first_value)
            } else {
                (Role::Gate, gate, None, first_gate)
            };
            Item {
                role,
                spec,
                linear: linear.expect("heads of this role are counted"),
                norm,
                head: unit - first,
                rows,
            }
        };
        let mut parts = Parts::new(worker, self.counter(index, QKV), sliced.count(), rows);
        while let Some(part) = parts.next() {
            for at in part.clone() {
                let upcoming = parts.after(&part, at).map(|next| item(next).first_panel());
                let item = item(at);
                let own_rows = RowsView::of(&own.head, self.scratch.strides.head);
                let heads = self.rows_of(&item, own_rows);
                for rows in self.projected_rows(index, &item) {
                    let panels = item.panels();
                    let target = Target::replace(heads);
                    // SAFETY: only this worker uses the head's columns of these rows.
                    unsafe {
                        let (to, of) = (rows.clone(), item.linear);
                        Self::multiply(&mut gemm, of, panels, to, upcoming, target);
                        match item.role {
                            // Normalized and rotated when all heads are there.
                            Role::Query | Role::Key if spec.qk_norm_whole => {}
                            Role::Query => self.apply_norm_and_rope(&item, rows, heads),
                            Role::Key | Role::Value => self.write_kv(weights.cache, &item, heads),
                            Role::Gate => {}
                        }
                    }
                }
            }
        }
    }

    /// The row ranges of an item to project: all of its rows, or of queries in a narrowed layer the row tiles with rows
    /// that need logits.
    fn projected_rows(&self, index: usize, item: &Item<'_>) -> impl Iterator<Item = Range<usize>> {
        let rows = item.rows.clone();
        let few = matches!(item.role, Role::Query | Role::Gate) && self.is_narrowed(index);
        let each = if few { ROWS } else { rows.len().max(1) };
        let parts = rows.clone().step_by(each);
        let parts = parts.map(move |first| first..rows.end.min(first + each));
        parts.filter(move |part| !few || self.needs_logits(part.clone()))
    }

    /// Where an item's columns are written: queries to the matrix that attention reads, gates beside its outputs, keys that are
    /// normalized later to a matrix of their own, other keys and values to `own`.
    fn rows_of(&self, item: &Item<'_>, own: RowsView) -> RowsView {
        let (strides, dim) = (&self.scratch.strides, item.spec.head_dim);
        match item.role {
            Role::Query => self
                .q_rows()
                .columns(item.head * strides.head, strides.head),
            Role::Key if item.spec.qk_norm_whole => self.head_of(self.k_rows(), item.head),
            Role::Key | Role::Value => own,
            Role::Gate => {
                let gates = RowsView::of(&self.scratch.attention_gate, strides.attention);
                gates.columns(item.head * dim, dim)
            }
        }
    }

    /// Rows of the keys of all heads, until they are normalized.
    fn k_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.k, self.scratch.strides.k)
    }

    /// The columns of a head in rows of padded heads.
    fn head_of(&self, rows: RowsView, head: usize) -> RowsView {
        let stride = self.scratch.strides.head;
        rows.columns(head * stride, stride)
    }

    /// Normalize queries and keys over all heads, rotate them, and write the keys to the KV cache.
    pub(super) fn norm_heads<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        index: usize,
        (spec, weights): (&AttentionSpec, &AttentionWeights),
    ) {
        let (tokens, counter) = (self.tokens(), self.counter(index, NORM_HEADS));
        let tables = self.tables_of(weights.cache);
        for token in Parts::new(worker, counter, tokens, tokens).flatten() {
            // SAFETY: the heads were projected before a barrier; only this worker uses this token's.
            unsafe {
                let norm = weights.q_norm.as_deref();
                self.norm_token(self.q_rows(), token, spec.num_heads, spec, norm, true);
                if weights.k.is_none() {
                    continue;
                }
                let (norm, heads) = (weights.k_norm.as_deref(), spec.num_kv_heads);
                self.norm_token(self.k_rows(), token, heads, spec, norm, false);
                let (block, slot) = self.slot(tables, token);
                for head in 0..heads {
                    let key = self.head_of(self.k_rows(), head).columns(0, spec.head_dim);
                    let cached = self.model.kv.layer(weights.cache).head(head);
                    cached.write_key(self.model.level, block, slot, key.row(token));
                }
            }
        }
    }

    /// Normalize the heads of a token together, and rotate each.
    ///
    /// # Safety
    /// They are projected, and no other worker uses them.
    unsafe fn norm_token(
        &self,
        rows: RowsView,
        token: usize,
        heads: usize,
        spec: &AttentionSpec,
        norm: Option<&[f32]>,
        is_query: bool,
    ) {
        let dim = spec.head_dim;
        // SAFETY: by contract.
        let head_of = |head| unsafe { self.head_of(rows, head).columns(0, dim).row_mut(token) };
        // SAFETY: the level was checked at load.
        let squares = |head| unsafe { sum_of_squares(self.model.level, head_of(head)) };
        let sum = (0..heads).map(squares).sum();
        let scale = scale_of_squares(sum, heads * dim, self.model.spec.norm_eps);
        for head in 0..heads {
            let values = head_of(head);
            if let Some(norm) = norm {
                for (value, weight) in values.iter_mut().zip(&norm[head * dim..]) {
                    *value = *value * scale * weight;
                }
            }
            // SAFETY: the level was checked at load.
            unsafe { self.rotate(spec, values, token, is_query) };
        }
    }

    /// Apply RoPE, and the temperature to queries.
    ///
    /// # Safety
    /// The machine has the level.
    unsafe fn rotate(&self, spec: &AttentionSpec, head: &mut [f32], token: usize, is_query: bool) {
        let position = self.plan.positions[token] as usize;
        if let Some(rope) = spec.rope {
            // SAFETY: the caller's promise.
            unsafe { self.model.ropes[rope].rotate(self.model.level, head, position) };
        }
        if let Some(temperature) = spec.temperature.filter(|_| is_query) {
            let periods = (position / temperature.original_context) as f32;
            let factor = 1.0 + temperature.beta * (1.0 + periods).ln();
            head.iter_mut().for_each(|value| *value *= factor);
        }
    }

    /// Apply the head's norm, if any, and RoPE to the queries or keys of `tokens`, which are rows of the item.
    ///
    /// # Safety
    /// They are projected at `from`, and no other worker uses them there.
    unsafe fn apply_norm_and_rope(&self, item: &Item<'_>, tokens: Range<usize>, from: RowsView) {
        let heads = from.columns(0, item.spec.head_dim);
        for token in tokens {
            // SAFETY: by contract; the level was checked at load.
            unsafe {
                let head = heads.row_mut(token);
                self.apply_norm(item, head);
                self.rotate(item.spec, head, token, item.role == Role::Query);
            }
        }
    }

    /// Apply the head's norm, if any.
    ///
    /// # Safety
    /// The machine has the level.
    unsafe fn apply_norm(&self, item: &Item<'_>, head: &mut [f32]) {
        if let Some(norm) = item.norm {
            let (level, eps) = (self.model.level, self.model.spec.norm_eps);
            // SAFETY: the caller's promise.
            unsafe { rms_norm_in_place(level, head, norm, eps) };
        }
    }

    /// Write an item's keys or values to the KV cache.
    ///
    /// # Safety
    /// They are projected at `from`, and no other worker uses them there.
    unsafe fn write_kv(&self, cache: usize, item: &Item<'_>, from: RowsView) {
        let level = self.model.level;
        let heads = from.columns(0, item.spec.head_dim);
        let cached = self.model.kv.layer(cache).head(item.head);
        let is_key = item.role == Role::Key;
        let tables = self.tables_of(cache);
        let mut rows = item.rows.clone();
        while !rows.is_empty() {
            let (tokens, (block, slot)) = self.next_tokens(tables, &cached, &rows);
            rows.start = tokens.end;
            let later = tokens.start + LANES;
            if tokens.len() == QUAD && slot % LANES == 0 && later < rows.end {
                let (block, slot) = self.slot(tables, later);
                cached.prefetch_tile(block, slot, is_key); // no longer in the CPU cache
            }
            // SAFETY: by contract; no other worker writes this head, and no other row these slots (checked).
            unsafe {
                if is_key {
                    self.apply_norm_and_rope(item, tokens.clone(), from);
                } else if item.norm.is_some() {
                    let values = tokens.clone();
                    values.for_each(|token| self.apply_norm(item, heads.row_mut(token)));
                }
                let one = || heads.row(tokens.start);
                let four = || std::array::from_fn(|i| heads.row(tokens.start + i));
                match (is_key, tokens.len()) {
                    (true, QUAD) => cached.write_keys(level, block, slot, four()),
                    (true, _) => cached.write_key(level, block, slot, one()),
                    (false, QUAD) => cached.write_values(level, block, slot, four()),
                    (false, _) => cached.write_value(level, block, slot, one()),
                }
            }
        }
    }

    /// The first tokens of `rows` that are written to the cache together, four or one, and block and slot of the first.
    fn next_tokens(
        &self,
        tables: (&[i32], usize),
        cached: &KvHead<'_>,
        rows: &Range<usize>,
    ) -> (Range<usize>, (usize, usize)) {
        let (first, (block, slot)) = (rows.start, self.slot(tables, rows.start));
        let four = rows.len() >= QUAD
            && cached.can_write_four_from(slot)
            && (1..QUAD).all(|i| self.slot(tables, first + i) == (block, slot + i));
        (first..first + if four { QUAD } else { 1 }, (block, slot))
    }

    /// The blocks of all runs in cache layer `cache`, and the number of entries of each run.
    pub(super) fn tables_of(&self, cache: usize) -> (&[i32], usize) {
        match self.model.kv.is_windowed(cache) {
            false => self.plan.block_tables(),
            true => self.plan.window_tables(),
        }
    }

    /// Block and slot of a flat token, by the tables of the layer.
    fn slot(&self, (tables, width): (&[i32], usize), token: usize) -> (usize, usize) {
        let (position, size) = (self.plan.positions[token] as usize, self.plan.block_size());
        let at = self.plan.run_of[token] as usize * width + position / size;
        (tables[at] as usize, position % size)
    }
}
