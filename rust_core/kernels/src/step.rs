//! One ragged step: the forward pass of every scheduled token, and sampling of the next tokens.
//!
//! Hot path; runs on every worker at once. A layer is five phases, each ended by a barrier:
//! norm + QKV + RoPE + KV cache write, attention, output projection + residual, norm + gate/up + SiLU, down + residual.
//! Workers divide the panels of the weights (see `work_share.rs`) and take attention and sampling items from a counter;
//! which worker computes an item never changes its bits. With few rows each worker prepares the activations for itself;
//! with many the workers divide them, which costs one more barrier. The activations of the down projection are quantized
//! where gate and up are multiplied. Do not allocate, lock or log here.

mod activations;
mod heads;
mod rows_view;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::activations::{Gating, Source, scale_mode_for};
use self::rows_view::RowsView;
use crate::activation_quant::quantize_gated;
use crate::attention::{Item, Task, Work, attend, combine};
use crate::dispatch::Level;
use crate::gemm::{Activations, Gemm, Output};
use crate::kv_cache::KvCache;
use crate::norm::silu_panel;
use crate::pack::PANEL_COLUMNS;
use crate::pack::layout::GROUP;
use crate::phase_clock::Phase;
use crate::plan::Plan;
use crate::pool::Worker;
use crate::rope::Rope;
use crate::sampler::{MAX_TOP_LOGPROBS, RowContext, sample, score, token_id_logprobs};
use crate::scratch::{Scratch, WorkerScratch};
use crate::spec::ModelSpec;
use crate::weights::{LayerWeights, Linear, Weights};
use crate::work_share::{Parts, SlicedItems};

/// A loaded model: weights, RoPE tables and KV cache.
#[derive(Debug)]
pub struct Model {
    pub spec: ModelSpec,
    pub weights: Weights,
    pub rope: Rope,
    pub kv: KvCache,
    pub level: Level,
}

/// Where a GEMM writes.
#[derive(Clone, Copy)]
struct Target {
    /// The columns of the first and following panels.
    rows: RowsView,
    /// Add to the present values instead of replacing them.
    accumulate: bool,
}

/// Phases of a layer.
const PHASES: usize = 5;
/// Counters of a layer: for each phase, one for its work and one for preparing its activations.
pub const COUNTERS: usize = 2 * PHASES;
const QKV: usize = 0;
const ATTENTION: usize = 1;
const OUTPUT: usize = 2;
const GATE_UP: usize = 3;
const DOWN: usize = 4;
/// Counters after the layers': panels of lm_head, rows of logits, and tokens to embed.
const LM_HEAD: usize = 0;
const LOGITS: usize = 1;
const EMBED: usize = 2;

/// A step, shared by all workers.
pub struct Step<'a> {
    pub model: &'a Model,
    pub scratch: &'a Scratch,
    pub plan: &'a Plan,
    pub attention: &'a Work,
    /// Flat tokens that need logits: those of the plan's samples, then those of its scores.
    pub logit_tokens: &'a [usize],
    /// Whether rows that need no logits are dropped in the last layer after their keys and values are written. See
    /// [`narrows`].
    pub narrow: bool,
    /// [`COUNTERS`] for each layer, then as many for the work before and after the layers; zero at the start.
    pub counters: &'a [AtomicUsize],
    /// Whether the workers' phase clocks run.
    pub timed: bool,
}

/// Whether the rows that need logits can be compacted to the front of the residual stream: some rows need none, and
/// `logit_tokens` names the others once and in order.
pub fn narrows(logit_tokens: &[usize], tokens: usize) -> bool {
    logit_tokens.len() < tokens && logit_tokens.is_sorted_by(|one, next| one < next)
}

// SAFETY: the raw pointers are those of the buffers in `Scratch`. Between two barriers each part of a buffer is
// accessed by one worker, or only read; everything else is read-only.
unsafe impl Sync for Step<'_> {}

impl Step<'_> {
    /// One worker's part of the step.
    pub fn run<'w>(&'w self, worker: &'w Worker<'w>) {
        // SAFETY: each worker gets its own scratch, once.
        let own = unsafe { self.scratch.workers.get(worker.index()) };
        own.clock.start(self.timed);
        self.embed(worker);
        barrier_wait(worker, own, Phase::Embed);
        for (index, layer) in self.model.weights.layers.iter().enumerate() {
            self.project_qkv(worker, own, index, layer);
            barrier_wait(worker, own, Phase::Qkv);
            if worker.index() == 0 && self.is_narrowed(index) {
                self.narrow_hidden(); // the attention phase does not read the residual stream
            }
            self.attend(worker, own, index);
            barrier_wait(worker, own, Phase::Attention);
            if self.rows_after_attention(index) == 0 {
                break; // the last layer of a step that needs no logits
            }
            self.project_output(worker, own, index, layer);
            barrier_wait(worker, own, Phase::Output);
            self.gate_and_up(worker, own, index, layer);
            barrier_wait(worker, own, Phase::GateUp);
            self.project_down(worker, own, index, layer);
            barrier_wait(worker, own, Phase::Down);
        }
        let (total, most) = (self.logit_tokens.len(), self.scratch.logit_rows);
        for start in (0..total).step_by(most) {
            let part = start..total.min(start + most);
            if start > 0 {
                barrier_wait(worker, own, Phase::Sample); // the previous part's logits are no longer read
            }
            self.lm_head(worker, own, part.clone());
            if worker.index() == 0 {
                self.logit_counter().store(start, Ordering::Relaxed);
            }
            barrier_wait(worker, own, Phase::LmHead);
            if worker.index() == 0 {
                // For the next part, which begins after a barrier.
                let last = self.layers();
                self.counter(last, LM_HEAD).store(0, Ordering::Relaxed);
                self.prepare_counter(last, LM_HEAD)
                    .store(0, Ordering::Relaxed);
            }
            self.use_logits(worker, own, part);
            own.clock.lap(Phase::Sample);
        }
    }

    fn layers(&self) -> usize {
        self.model.weights.layers.len()
    }

    /// The counter of a phase's work.
    fn counter(&self, layer: usize, phase: usize) -> &AtomicUsize {
        &self.counters[layer * COUNTERS + phase]
    }

    /// The counter of the row tiles that a phase's activations are prepared in.
    fn prepare_counter(&self, layer: usize, phase: usize) -> &AtomicUsize {
        self.counter(layer, PHASES + phase)
    }

    fn tokens(&self) -> usize {
        self.plan.token_ids.len()
    }

    /// Whether layer `index` computes queries, and everything after them, only for rows that need logits.
    fn is_narrowed(&self, index: usize) -> bool {
        self.narrow && index + 1 == self.layers()
    }

    fn rows_after_attention(&self, index: usize) -> usize {
        if self.is_narrowed(index) {
            self.logit_tokens.len()
        } else {
            self.tokens()
        }
    }

    /// Rows of the residual stream.
    fn hidden_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.hidden, self.scratch.strides.hidden)
    }

    /// Rows of the queries of all heads.
    fn q_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.q, self.scratch.strides.q)
    }

    /// Rows of the attention outputs of all heads.
    fn attention_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.attention, self.scratch.strides.attention)
    }

    /// Rows of the gated activations, if the down projection takes floats.
    fn gate_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.gate, self.scratch.strides.gate)
    }

    /// Rows of the logits of the current part.
    fn logit_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.logits, self.scratch.strides.logits)
    }

    /// Whether one of these tokens needs logits.
    fn needs_logits(&self, tokens: Range<usize>) -> bool {
        let first = self
            .logit_tokens
            .partition_point(|&token| token < tokens.start);
        self.logit_tokens
            .get(first)
            .is_some_and(|&token| token < tokens.end)
    }

    /// Move the rows that need logits to the front of the residual stream.
    fn narrow_hidden(&self) {
        let hidden = self.hidden_rows();
        for (row, &token) in self.logit_tokens.iter().enumerate() {
            let (from, to) = (hidden.ptr(token), hidden.ptr(row));
            // SAFETY: rows of the residual stream, which this worker alone uses now. Tokens ascend, so a row is
            // never overwritten before it was moved.
            unsafe { from.copy_to(to, self.model.spec.hidden_size) };
        }
    }

    fn embed<'w>(&'w self, worker: &'w Worker<'w>) {
        let (scratch, width) = (self.scratch, self.model.spec.hidden_size);
        let (tokens, counter) = (self.tokens(), self.counter(self.layers(), EMBED));
        for token in Parts::new(worker, counter, tokens, tokens).flatten() {
            // SAFETY: only this worker uses this row of the residual stream.
            let row = unsafe {
                scratch
                    .hidden
                    .slice_mut(token * scratch.strides.hidden, width)
            };
            self.model
                .weights
                .embedding
                .unpack_output(self.plan.token_ids[token] as usize, row);
        }
    }

    /// The residual stream, normalized with `norm`.
    fn hidden<'a>(&'a self, norm: &'a [f32]) -> Source<'a> {
        Source {
            rows: self.hidden_rows(),
            index: None,
            norm: Some(norm),
        }
    }

    /// Multiply rows `rows` with panels `panels` of `linear` into `target`, prefetching the
    /// panel at `upcoming` after these.
    ///
    /// # Safety
    /// `gemm` is of rows that `linear` takes; no other worker uses these rows of `target`.
    unsafe fn multiply(
        gemm: &mut Gemm<'_>,
        linear: &Linear,
        panels: Range<usize>,
        rows: Range<usize>,
        upcoming: Option<*const u8>,
        target: Target,
    ) {
        let matrix = &linear.matrix;
        debug_assert!(panels.len() * PANEL_COLUMNS <= target.rows.width());
        let output = Output {
            out: target.rows.ptr(0),
            stride: target.rows.stride(),
            accumulate: target.accumulate,
            bias: linear.panel_bias(panels.start),
        };
        let next = upcoming.unwrap_or(matrix.panel(panels.end - 1));
        // SAFETY: by contract.
        unsafe { gemm.panels_of_rows(matrix, panels, rows, next, output) };
    }

    /// Attention, item by item.
    fn attend<'w>(&'w self, worker: &'w Worker<'w>, own: &mut WorkerScratch, index: usize) {
        let (items, counter) = (&self.attention.items, self.counter(index, ATTENTION));
        let mut parts = Parts::of_cost(worker, counter, &self.attention.costs);
        while let Some(part) = parts.next() {
            for at in part
                .clone()
                .filter(|&at| self.has_queries(index, &items[at]))
            {
                // The item that this worker probably computes next: its first keys and values are prefetched.
                let next = parts.after(&part, at).map(|next| &items[next]);
                let ahead = next.filter(|next| next.split.is_none());
                let ahead = ahead.map(|next| self.task(index, next));
                self.attend_to(own, index, &items[at], ahead.as_ref());
            }
        }
    }

    /// Whether the output of an item of a layer's attention is needed.
    fn has_queries(&self, index: usize, item: &Item) -> bool {
        let tokens = item.tokens.start as usize..item.tokens.end as usize;
        let mut tokens = self.attention.tokens[tokens]
            .iter()
            .map(|&token| token as usize);
        !self.is_narrowed(index) || tokens.any(|token| self.needs_logits(token..token + 1))
    }

    /// Compute one item of a layer's attention.
    fn attend_to(
        &self,
        own: &mut WorkerScratch,
        index: usize,
        item: &Item,
        ahead: Option<&Task<'_>>,
    ) {
        let task = self.task(index, item);
        let (level, kv, scratch) = (self.model.level, &self.model.kv, &mut own.attention);
        let Some(split) = item.split else {
            // SAFETY: the level was checked at load; queries and outputs of the item's tokens and heads are inside
            // their matrices, and no two items share them.
            unsafe { attend(level, kv, &task, None, ahead, scratch) };
            return;
        };
        let partials = &self.scratch.partials;
        let (slot, index) = (split.slot as usize, split.index as usize);
        let rows = task.rows();
        let split_stride = rows * partials.row_floats;
        // SAFETY: as above; each split writes a part of its own, and the worker that finishes the last split (all
        // others' writes are visible then) reads them all.
        unsafe {
            let first = partials.of_task(split.first_row as usize, rows);
            let part = first.add(index * split_stride);
            attend(level, kv, &task, Some((index, part)), ahead, scratch);
            let arrived = self.attention.arrived[slot].fetch_add(1, Ordering::AcqRel) + 1;
            if arrived.is_multiple_of(split.count) {
                let head_dim = self.model.spec.head_dim;
                combine(level, &task, head_dim, first, split_stride, scratch);
            }
        }
    }

    fn task(&self, layer: usize, item: &Item) -> Task<'_> {
        let (spec, strides) = (&self.model.spec, &self.scratch.strides);
        let (tables, table_width) = self.plan.block_tables();
        let tokens = item.tokens.start as usize..item.tokens.end as usize;
        let segments = item.segments.start as usize..item.segments.end as usize;
        Task {
            layer,
            kv_head: item.head as usize / spec.group_size(),
            head: item.head as usize,
            heads: item.heads as usize,
            window: spec.sliding_windows[layer],
            scale: 1.0 / (spec.head_dim as f32).sqrt(),
            tokens: &self.attention.tokens[tokens],
            positions: &self.plan.positions,
            segments: &self.attention.segments[segments],
            tables,
            table_width,
            q: self.scratch.q.ptr(),
            q_token_stride: strides.q,
            q_head_stride: strides.head,
            out: self.scratch.attention.ptr(),
            out_token_stride: strides.attention,
        }
    }

    /// Output projection, added to the residual stream.
    fn project_output<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
    ) {
        let source = Source {
            rows: self.attention_rows(),
            index: self.is_narrowed(index).then_some(self.logit_tokens),
            norm: None,
        };
        let rows = self.rows_after_attention(index);
        let counter = self.prepare_counter(index, OUTPUT);
        let activations = self.prepare(worker, own, rows, source, &[&layer.o], counter);
        let counter = self.counter(index, OUTPUT);
        self.add_product(worker, own, rows, &activations, &layer.o, counter);
    }

    /// Down projection, added to the residual stream.
    fn project_down<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
    ) {
        let rows = self.rows_after_attention(index);
        let activations = match self.gated(&layer.down, rows) {
            Some(gated) => Activations {
                quant: Some(gated),
                scale_mode: scale_mode_for(&[&layer.down]),
                float: std::ptr::null(),
                float_stride: 0,
            },
            None => {
                let source = Source {
                    rows: self.gate_rows(),
                    index: None,
                    norm: None,
                };
                let counter = self.prepare_counter(index, DOWN);
                self.prepare(worker, own, rows, source, &[&layer.down], counter)
            }
        };
        let counter = self.counter(index, DOWN);
        self.add_product(worker, own, rows, &activations, &layer.down, counter);
    }

    /// Multiply `rows` prepared rows with `linear` and add the result to the residual stream.
    fn add_product<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        rows: usize,
        activations: &Activations,
        linear: &Linear,
        counter: &'w AtomicUsize,
    ) {
        // SAFETY: the level was checked at load; so many rows were prepared, for these users.
        let mut gemm = unsafe { Gemm::new(self.model.level, activations, rows, &mut own.panel) };
        let (panels, each) = (linear.matrix.panels(), gemm.panels_at_once(&linear.matrix));
        let sliced = SlicedItems::new(panels.div_ceil(each), rows, worker.size());
        let mut parts = Parts::new(worker, counter, sliced.count(), rows);
        while let Some(part) = parts.next() {
            for item in part.clone() {
                let (unit, rows) = sliced.get(item);
                let upcoming = parts.after(&part, item);
                let these = unit * each..panels.min((unit + 1) * each);
                let target = Target {
                    rows: panel_columns(self.hidden_rows(), &these),
                    accumulate: true,
                };
                let upcoming = upcoming.map(|item| linear.matrix.panel(sliced.get(item).0 * each));
                // SAFETY: only this worker uses these rows of the panels' columns of the residual stream.
                unsafe { Self::multiply(&mut gemm, linear, these, rows, upcoming, target) };
            }
        }
    }

    /// Gate and up projections, and `silu(gate) * up` while both are in the CPU cache. The result is quantized at once
    /// if the down projection takes quantized rows; a group of its inputs is two panels.
    fn gate_and_up<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
    ) {
        let rows = self.rows_after_attention(index);
        let users = [&layer.gate, &layer.up];
        let activations = self.prepare(
            worker,
            own,
            rows,
            self.hidden(&layer.mlp_norm),
            &users,
            self.prepare_counter(index, GATE_UP),
        );
        // SAFETY: the level was checked at load; so many rows were prepared, for these users.
        let mut gemm = unsafe { Gemm::new(self.model.level, &activations, rows, &mut own.panel) };
        let level = self.model.level;
        let gating = self.gating(&layer.down, rows);
        let panels = layer.gate.matrix.panels();
        // Panels of an item, and columns that are multiplied at once.
        let each = if gating == Gating::Floats {
            1
        } else {
            GROUP / PANEL_COLUMNS
        };
        let columns = if gating == Gating::Groups {
            GROUP
        } else {
            PANEL_COLUMNS
        };
        let panels_at_once = columns / PANEL_COLUMNS;
        let (gate, up) = (
            RowsView::of(&own.gate, columns),
            RowsView::of(&own.up, columns),
        );
        let (groups, scale_mode) = (
            layer.down.matrix.inputs / GROUP,
            scale_mode_for(&[&layer.down]),
        );
        let counter = self.counter(index, GATE_UP);
        let sliced = SlicedItems::new(panels / each, rows, worker.size());
        let mut parts = Parts::new(worker, counter, sliced.count(), rows);
        while let Some(part) = parts.next() {
            for item in part.clone() {
                let (unit, slice) = sliced.get(item);
                let panels = unit * each..(unit + 1) * each;
                for first in panels.clone().step_by(panels_at_once) {
                    let these = first..first + panels_at_once;
                    let next = if these.end < panels.end {
                        these.end
                    } else {
                        let upcoming = parts.after(&part, item);
                        upcoming.map_or(first, |item| sliced.get(item).0 * each)
                    };
                    let output = |out: RowsView, linear: &Linear| Output {
                        out: out.ptr(0),
                        stride: out.stride(),
                        accumulate: false,
                        bias: linear.panel_bias(first),
                    };
                    let (gate_out, up_out) = (output(gate, &layer.gate), output(up, &layer.up));
                    let (gate_panels, up_panels) = (&layer.gate.matrix, &layer.up.matrix);
                    let (next_up, next) = (up_panels.panel(first), gate_panels.panel(next));
                    let (gate, up) = (gate.ptr(slice.start), up.ptr(slice.start));
                    // SAFETY: only this worker uses these columns of the slice's gated rows, and `gate` and `up`.
                    unsafe {
                        for (matrix, next, out) in
                            [(gate_panels, next_up, gate_out), (up_panels, next, up_out)]
                        {
                            let (panels, rows) = (these.clone(), slice.clone());
                            gemm.panels_of_rows(matrix, panels, rows, next, out);
                        }
                        if gating == Gating::Groups {
                            let to = self.gated_group(unit, slice.start, groups);
                            quantize_gated(level, gate, up, slice.len(), scale_mode, to);
                        } else {
                            let out = panel_columns(self.gate_rows(), &these);
                            let (out, stride) = (out.ptr(slice.start), out.stride());
                            silu_panel(level, gate, up, out, stride, slice.len());
                        }
                    }
                }
            }
            if gating == Gating::Parts {
                // SAFETY: as above; so few rows are not cut into slices.
                unsafe { self.quantize_gated_columns(part, rows, &layer.down) };
            }
        }
    }

    /// Logits of `part` of the tokens that need them.
    fn lm_head<'w>(&'w self, worker: &'w Worker<'w>, own: &mut WorkerScratch, part: Range<usize>) {
        let (weights, rows) = (&self.model.weights, part.len());
        let hidden = self.hidden(&weights.final_norm);
        let source = if self.narrow {
            Source {
                rows: hidden.rows.rows_from(part.start),
                ..hidden
            }
        } else {
            Source {
                index: Some(&self.logit_tokens[part]),
                ..hidden
            }
        };
        let users = [&weights.lm_head];
        let counter = self.prepare_counter(self.layers(), LM_HEAD);
        let activations = self.prepare(worker, own, rows, source, &users, counter);
        // SAFETY: the level was checked at load; so many rows were prepared, for these users.
        let mut gemm = unsafe { Gemm::new(self.model.level, &activations, rows, &mut own.panel) };
        let (panels, counter) = (
            weights.lm_head.matrix.panels(),
            self.counter(self.layers(), LM_HEAD),
        );
        let mut parts = Parts::new(worker, counter, panels, rows);
        while let Some(panels) = parts.next() {
            let target = Target {
                rows: panel_columns(self.logit_rows(), &panels),
                accumulate: false,
            };
            let linear = &weights.lm_head;
            let upcoming = parts.upcoming().map(|panel| linear.matrix.panel(panel));
            // SAFETY: only this worker uses these panels' columns of the logits.
            unsafe { Self::multiply(&mut gemm, linear, panels, 0..rows, upcoming, target) };
        }
    }

    fn logit_counter(&self) -> &AtomicUsize {
        self.counter(self.layers(), LOGITS)
    }

    /// Sample from, or score with, the logits of `part`; overwrites the logits.
    fn use_logits(&self, worker: &Worker<'_>, own: &mut WorkerScratch, part: Range<usize>) {
        let (strides, vocab) = (&self.scratch.strides, self.model.spec.vocab_size);
        while worker.may_work() {
            let next = self.logit_counter().fetch_add(1, Ordering::Relaxed);
            if next >= part.end {
                return;
            }
            // SAFETY: only this worker uses this row of logits.
            let logits = unsafe {
                self.scratch
                    .logits
                    .slice_mut((next - part.start) * strides.logits, vocab)
            };
            match next.checked_sub(self.plan.samples.len()) {
                None => self.sample(own, next, logits),
                Some(at) => self.score(own, at, logits),
            }
        }
    }

    /// Compute the plan's sample `at`.
    fn sample(&self, own: &mut WorkerScratch, at: usize, logits: &mut [f32]) {
        let (results, sample_of) = (&self.scratch.results, &self.plan.samples[at]);
        let run = &self.plan.runs[sample_of.run as usize];
        let known = run.num_tokens + sample_of.drafts as usize;
        let tokens = self.plan.penalised_tokens(run);
        let (bias_ids, bias_values) = self.plan.biases(run);
        let context = RowContext {
            params: &run.sampling,
            tokens: &tokens[..known.min(tokens.len())],
            penalty_start: run.penalty_start,
            position: known as u64,
            bias_ids,
            bias_values,
            breakers: self.plan.breakers(&run.sampling),
            mask: self.plan.mask(run),
        };
        let (first, count) = run.logprob_ids;
        if count > 0 {
            let ids = self.plan.logprob_ids(run);
            // SAFETY: these entries belong to the run, which has no other sample; the level was checked at load.
            unsafe {
                let logprobs = results.token_id_logprobs.slice_mut(first, count);
                token_id_logprobs(self.model.level, logits, ids, &mut own.sampler, logprobs);
            }
        }
        // SAFETY: only this worker uses this entry of the results; the level was checked at load.
        unsafe {
            let top = at * MAX_TOP_LOGPROBS;
            let sampled = sample(
                self.model.level,
                logits,
                &context,
                &mut own.sampler,
                results.top_ids.slice_mut(top, MAX_TOP_LOGPROBS),
                results.top_logprobs.slice_mut(top, MAX_TOP_LOGPROBS),
            );
            *results.sampled.ptr().add(at) = sampled.token.unwrap_or(-1);
            *results.logprobs.ptr().add(at) = sampled.logprob;
        }
    }

    /// Compute the plan's score `at`.
    fn score(&self, own: &mut WorkerScratch, at: usize, logits: &[f32]) {
        let (results, wanted) = (&self.scratch.score_results, &self.plan.scores[at]);
        let (top, count) = (at * MAX_TOP_LOGPROBS, wanted.top as usize);
        // SAFETY: only this worker uses this entry of the results; the level was checked at load.
        unsafe {
            let scored = score(
                self.model.level,
                logits,
                wanted.target as usize,
                &mut own.sampler,
                results.top_ids.slice_mut(top, count),
                results.top_logprobs.slice_mut(top, count),
            );
            *results.logprobs.ptr().add(at) = scored.logprob;
            *results.ranks.ptr().add(at) = scored.rank;
        }
    }
}

/// Columns of the panels `panels` of a matrix.
fn panel_columns(rows: RowsView, panels: &Range<usize>) -> RowsView {
    rows.columns(panels.start * PANEL_COLUMNS, panels.len() * PANEL_COLUMNS)
}

/// End a phase: wait for all workers.
fn barrier_wait(worker: &Worker<'_>, own: &WorkerScratch, phase: Phase) {
    own.clock.lap(phase);
    worker.barrier();
    own.clock.lap(Phase::Wait);
}
