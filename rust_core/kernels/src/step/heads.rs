//! The first phase of a layer: queries, keys and values, head by head.
//!
//! The worker that projects a head also applies its norm and RoPE, and writes keys and values to the KV cache.

use std::ops::Range;

use super::rows_view::RowsView;
use super::{QKV, Step, Target};
use crate::amx::row_tiles::ROWS;
use crate::gemm::Gemm;
use crate::kv_cache::{KvHead, QUAD};
use crate::norm::rms_norm;
use crate::pool::Worker;
use crate::scratch::WorkerScratch;
use crate::simd::LANES;
use crate::spec::MAX_HEAD_DIM;
use crate::weights::{LayerWeights, Linear};
use crate::work_share::{Parts, SlicedItems};

/// What a projected head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Query,
    Key,
    Value,
}

/// One head of some rows, projected by one worker.
struct Item<'a> {
    role: Role,
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
    ) {
        let (spec, rows) = (&self.model.spec, self.tokens());
        let users = [&layer.q, &layer.k, &layer.v];
        let activations = self.prepare(
            worker,
            own,
            rows,
            self.hidden(&layer.attention_norm),
            &users,
            self.prepare_counter(index, QKV),
        );
        // SAFETY: the level was checked at load; so many rows were prepared, for these users.
        let mut gemm = unsafe { Gemm::new(self.model.level, &activations, rows, &mut own.panel) };
        let heads = spec.num_heads + 2 * spec.num_kv_heads;
        let sliced = SlicedItems::new(heads, rows, worker.size());
        let item = |at| {
            let (unit, rows) = sliced.get(at);
            let first_value = spec.num_heads + spec.num_kv_heads;
            let (role, linear, norm, first) = if unit < spec.num_heads {
                (Role::Query, &layer.q, &layer.q_norm, 0)
            } else if unit < first_value {
                (Role::Key, &layer.k, &layer.k_norm, spec.num_heads)
            } else {
                (Role::Value, &layer.v, &None, first_value)
            };
            Item {
                role,
                linear,
                norm: norm.as_deref(),
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
                    let target = Target {
                        rows: heads,
                        accumulate: false,
                    };
                    // SAFETY: only this worker uses the head's columns of these rows.
                    unsafe {
                        let (to, of) = (rows.clone(), item.linear);
                        Self::multiply(&mut gemm, of, panels, to, upcoming, target);
                        match item.role {
                            Role::Query => self.apply_norm_and_rope(&item, rows, heads),
                            Role::Key | Role::Value => self.write_kv(index, &item, heads),
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
        let few = item.role == Role::Query && self.is_narrowed(index);
        let each = if few { ROWS } else { rows.len().max(1) };
        let parts = rows.clone().step_by(each);
        let parts = parts.map(move |first| first..rows.end.min(first + each));
        parts.filter(move |part| !few || self.needs_logits(part.clone()))
    }

    /// Where an item's columns are written: queries to the matrix that attention reads, keys and values to `own`.
    fn rows_of(&self, item: &Item<'_>, own: RowsView) -> RowsView {
        let stride = self.scratch.strides.head;
        match item.role {
            Role::Query => self.q_rows().columns(item.head * stride, stride),
            Role::Key | Role::Value => own,
        }
    }

    /// Apply the model's norm, if any, and RoPE to the queries or keys of `tokens`, which are rows of the item.
    ///
    /// # Safety
    /// They are projected at `from`, and no other worker uses them there.
    unsafe fn apply_norm_and_rope(&self, item: &Item<'_>, tokens: Range<usize>, from: RowsView) {
        let (spec, level) = (&self.model.spec, self.model.level);
        let heads = from.columns(0, spec.head_dim);
        for token in tokens {
            // SAFETY: by contract; the level was checked at load.
            unsafe {
                let head = heads.row_mut(token);
                if let Some(norm) = item.norm {
                    let mut normed = [0.0; MAX_HEAD_DIM];
                    let normed = &mut normed[..head.len()];
                    rms_norm(level, head, norm, spec.rms_norm_eps, normed);
                    head.copy_from_slice(normed);
                }
                let position = self.plan.positions[token] as usize;
                self.model.rope.rotate(level, head, position);
            }
        }
    }

    /// Write an item's keys or values to the KV cache.
    ///
    /// # Safety
    /// They are projected at `from`, and no other worker uses them there.
    unsafe fn write_kv(&self, index: usize, item: &Item<'_>, from: RowsView) {
        let level = self.model.level;
        let heads = from.columns(0, self.model.spec.head_dim);
        let (cached, is_key) = (self.model.kv.head(index, item.head), item.role == Role::Key);
        let mut rows = item.rows.clone();
        while !rows.is_empty() {
            let (tokens, (block, slot)) = self.next_tokens(&cached, &rows);
            rows.start = tokens.end;
            let later = tokens.start + LANES;
            if tokens.len() == QUAD && slot % LANES == 0 && later < rows.end {
                let (block, slot) = self.slot(later);
                cached.prefetch_tile(block, slot, is_key); // no longer in the CPU cache
            }
            // SAFETY: by contract; no other worker writes this head, and no other row these slots (checked).
            unsafe {
                if is_key {
                    self.apply_norm_and_rope(item, tokens.clone(), from);
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
        cached: &KvHead<'_>,
        rows: &Range<usize>,
    ) -> (Range<usize>, (usize, usize)) {
        let (first, (block, slot)) = (rows.start, self.slot(rows.start));
        let four = rows.len() >= QUAD
            && cached.can_write_four_from(slot)
            && (1..QUAD).all(|i| self.slot(first + i) == (block, slot + i));
        (first..first + if four { QUAD } else { 1 }, (block, slot))
    }

    /// Block and slot of a flat token.
    fn slot(&self, token: usize) -> (usize, usize) {
        let (position, size) = (
            self.plan.positions[token] as usize,
            self.model.kv.shape().block_size,
        );
        let table = self.plan.block_table(self.plan.run_of[token] as usize);
        (table[position / size] as usize, position % size)
    }
}
