//! The first phase of a layer: queries, keys and values, head by head.
//!
//! Whoever projects a head rotates it to its positions at once, and caches it if it is a key or a value.

use std::ops::Range;

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

/// What becomes of a projected head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Query,
    Key,
    Value,
}

/// One head of some rows, which a worker projects at once.
struct Item<'a> {
    role: Role,
    linear: &'a Linear,
    /// What it is normalised with, if it is.
    norm: Option<&'a [f32]>,
    /// Among those of its role.
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

impl Target {
    /// A head of row `row`, whose columns are all that is written here.
    ///
    /// # Safety
    /// It was written, and nobody else uses it.
    unsafe fn head<'a>(self, row: usize, dim: usize) -> &'a mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.out.add(row * self.stride), dim) }
    }
}

impl Step<'_> {
    /// Phase a: each worker projects whole heads, with many rows also slices of one.
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
                let target = self.target_of(&item, own.head.ptr());
                for rows in self.projected_rows(index, &item) {
                    let panels = item.panels();
                    // SAFETY: a head's columns of these rows: this worker's alone.
                    unsafe {
                        let (to, of) = (rows.clone(), item.linear);
                        Self::multiply(&mut gemm, of, panels, to, upcoming, target);
                        match item.role {
                            Role::Query => self.position(&item, rows, target),
                            Role::Key | Role::Value => self.cache(index, &item, target),
                        }
                    }
                }
            }
        }
    }

    /// An item's rows, or of queries that few rows need the row tiles that hold these.
    fn projected_rows(&self, index: usize, item: &Item<'_>) -> impl Iterator<Item = Range<usize>> {
        let rows = item.rows.clone();
        let few = item.role == Role::Query && self.is_narrowed(index);
        let each = if few { ROWS } else { rows.len().max(1) };
        let parts = rows.clone().step_by(each);
        let parts = parts.map(move |first| first..rows.end.min(first + each));
        parts.filter(move |part| !few || self.needs_logits(part.clone()))
    }

    /// Where an item's columns go: queries into the matrix that attention reads, others to `own`.
    fn target_of(&self, item: &Item<'_>, own: *mut f32) -> Target {
        let strides = &self.scratch.strides;
        let (out, stride) = match item.role {
            Role::Query => {
                let first = self.scratch.q.ptr();
                (first.wrapping_add(item.head * strides.head), strides.q)
            }
            Role::Key | Role::Value => (own, strides.head),
        };
        Target {
            out,
            stride,
            accumulate: false,
        }
    }

    /// Normalise queries or keys of `tokens`, some of the item's rows, where the model does, and rotate them to their
    /// positions.
    ///
    /// # Safety
    /// They are projected at `from`, and nobody else uses them there.
    unsafe fn position(&self, item: &Item<'_>, tokens: Range<usize>, from: Target) {
        let (spec, level) = (&self.model.spec, self.model.level);
        for token in tokens {
            // SAFETY: by contract; the level was checked at load.
            unsafe {
                let head = from.head(token, spec.head_dim);
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

    /// Write an item's keys or values into the cache.
    ///
    /// # Safety
    /// They are projected at `from`, and nobody else uses them there.
    unsafe fn cache(&self, index: usize, item: &Item<'_>, from: Target) {
        let (level, dim) = (self.model.level, self.model.spec.head_dim);
        let (cached, is_key) = (self.model.kv.head(index, item.head), item.role == Role::Key);
        let mut rows = item.rows.clone();
        while !rows.is_empty() {
            let (tokens, (block, slot)) = self.neighbours(&cached, &rows);
            rows.start = tokens.end;
            let later = tokens.start + LANES;
            if tokens.len() == QUAD && slot % LANES == 0 && later < rows.end {
                let (block, slot) = self.slot(later);
                cached.prefetch_tile(block, slot, is_key); // it was written to long ago, if ever
            }
            // SAFETY: by contract; no other worker has this head, and no other row these slots (checked).
            unsafe {
                if is_key {
                    self.position(item, tokens.clone(), from);
                }
                let one = || &*from.head(tokens.start, dim);
                let four = || std::array::from_fn(|i| &*from.head(tokens.start + i, dim));
                match (is_key, tokens.len()) {
                    (true, QUAD) => cached.write_keys(level, block, slot, four()),
                    (true, _) => cached.write_key(level, block, slot, one()),
                    (false, QUAD) => cached.write_values(level, block, slot, four()),
                    (false, _) => cached.write_value(level, block, slot, one()),
                }
            }
        }
    }

    /// The first tokens of `rows` that are cached together, four or one, and the first one's block and slot.
    fn neighbours(
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
