//! One ragged step: the forward pass of every scheduled token, and sampling of the next tokens.
//!
//! Hot path; runs on every worker at once. A layer of most models is five phases, each ended by a barrier:
//! norm + QKV + RoPE + KV cache write, attention, output projection + residual, norm + gate/up + activation, down + residual.
//! What a layer's description adds (norms over all heads, norms or factors of what is added to the residual stream,
//! embeddings of its own) are further phases, which other layers do not have.
//! Workers divide the panels of the weights (see `work_share.rs`) and take attention and sampling items from a counter;
//! which worker computes an item never changes its bits. With few rows each worker prepares the activations for itself;
//! with many the workers divide them, which costs one more barrier. The activations of the down projection are quantized
//! where gate and up are multiplied. Do not allocate, lock or log here.

mod activations;
mod branch;
mod embedding;
mod experts;
mod experts_beside;
mod feed_forward;
mod heads;
mod laurel;
mod per_layer;
mod recurrent;
mod rows_view;
mod sparse;
mod streams;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::activations::Source;
use self::experts::Experts;
use self::rows_view::RowsView;
use crate::activation::{sigmoid_gate, softcap};
use crate::attention::{Item, Task, Work, attend, combine};
use crate::dispatch::Level;
use crate::gemm::{Activations, Gemm, Output};
use crate::kv_cache::KvPools;
use crate::pack::PANEL_COLUMNS;
use crate::phase_clock::Phase;
use crate::plan::Plan;
use crate::pool::Worker;
use crate::recurrent::states::StateCache;
use crate::rope::Rope;
use crate::sampler::{MAX_TOP_LOGPROBS, RowContext, sample, score, token_id_logprobs};
use crate::scratch::{Scratch, WorkerScratch};
use crate::spec::{AttentionSpec, FeedForwardSpec, MAX_STREAMS, MixerSpec, ModelSpec};
use crate::weights::{
    AttentionWeights, FeedForwardWeights, LayerWeights, Linear, MixerWeights, Norm, Weights,
};
use crate::work_share::{Parts, SlicedItems};

/// A loaded model: weights, RoPE tables, KV cache and recurrent states.
#[derive(Debug)]
pub struct Model {
    pub spec: ModelSpec,
    pub weights: Weights,
    /// By index into the spec's.
    pub ropes: Vec<Rope>,
    pub kv: KvPools,
    pub states: StateCache,
    /// For each layer, the index of its [`Work`] among the step's.
    pub work_of: Vec<usize>,
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

impl Target {
    /// Columns whose values are replaced.
    fn replace(rows: RowsView) -> Self {
        Self {
            rows,
            accumulate: false,
        }
    }
}

/// Phases of a layer that have work to share.
const PHASES: usize = 26;
/// Counters of a layer: for each phase, one for its work and one for preparing its activations.
pub const COUNTERS: usize = 2 * PHASES;
const QKV: usize = 0;
const ATTENTION: usize = 1;
const OUTPUT: usize = 2;
const GATE_UP: usize = 3;
const DOWN: usize = 4;
const NORM_HEADS: usize = 5;
const ADD_MIXER: usize = 6;
const ADD_FFN: usize = 7;
const PER_LAYER_GATE: usize = 8;
const PER_LAYER_OUTPUT: usize = 9;
const ADD_PER_LAYER: usize = 10;
const SCALE: usize = 11;
const ROUTER: usize = 12;
const SHARED_ROUTER: usize = 13;
const CHOOSE: usize = 14;
const BESIDE_GATE_UP: usize = 15;
const BESIDE_DOWN: usize = 16;
const ADD_BESIDE: usize = 17;
const LAUREL_LEFT: usize = 18;
const LAUREL_RIGHT: usize = 19;
const NORM_LAUREL: usize = 20;
const ADD_LAUREL: usize = 21;
const PREDICT: usize = 22;
const CORRECT: usize = 23;
const CUT: usize = 24;
const UP: usize = 25;
/// Counters before and after the layers: panels of lm_head, rows of logits, tokens to embed, each layer's own embeddings, and
/// residual streams.
const LM_HEAD: usize = 0;
const LOGITS: usize = 1;
const EMBED: usize = 2;
const PROJECT_EMBEDDINGS: usize = 3;
const COMBINE_EMBEDDINGS: usize = 4;
const SPREAD: usize = 5;
const SCALE_STREAMS: usize = 6;
/// One for each stream but the first, as of the next.
const MERGE: usize = 7;
const ADD_MERGED: usize = MERGE + MAX_STREAMS - 1;

/// A step, shared by all workers.
pub struct Step<'a> {
    pub model: &'a Model,
    pub scratch: &'a Scratch,
    pub plan: &'a Plan,
    /// One for each kind of attention, see [`Model::work_of`].
    pub attention: &'a [Work],
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
        self.embed(worker, own);
        barrier_wait(worker, own, Phase::Embed);
        if self.model.weights.per_layer.is_some() {
            self.embed_per_layer(worker, own);
        }
        if let Some(projections) = &self.model.weights.streams {
            self.spread_streams(worker, own, projections);
        }
        let layers = self.model.spec.layers.iter();
        for (index, (spec, layer)) in layers.zip(&self.model.weights.layers).enumerate() {
            if let Some(streams) = &layer.streams {
                self.predict_streams(worker, own, index, streams);
            }
            if let Some(laurel) = &layer.laurel {
                self.write_laurel(worker, own, index, layer.mixer_norm.as_ref(), laurel);
            }
            match (&spec.mixer, &layer.mixer) {
                (Some(MixerSpec::Attention(spec)), Some(MixerWeights::Attention(weights))) => {
                    self.mix_by_attention(worker, own, index, layer, (spec, weights));
                    if self.rows_after_attention(index) == 0 {
                        break; // the last layer of a step that needs no logits
                    }
                }
                (_, Some(MixerWeights::ShortConv(weights))) => {
                    self.mix_by_short_conv(worker, own, index, layer, weights);
                }
                (_, Some(MixerWeights::StateHeads(weights))) => {
                    self.mix_by_state_heads(worker, own, index, layer, weights);
                }
                _ => {}
            }
            if layer.laurel.is_some() {
                self.add_laurel(worker, own, index);
            }
            match (&spec.ffn, &layer.ffn) {
                (Some(FeedForwardSpec::Mlp(spec)), Some(FeedForwardWeights::Mlp(mlp))) => {
                    match spec.cutoff {
                        Some(cutoff) => {
                            let network = (spec, mlp, cutoff);
                            self.cut_feed_forward(worker, own, index, layer, network);
                        }
                        None => self.feed_forward(worker, own, index, layer, (spec, mlp)),
                    }
                }
                (
                    Some(FeedForwardSpec::Experts(spec)),
                    Some(FeedForwardWeights::Experts(weights)),
                ) => {
                    let experts = Experts { spec, weights };
                    match (&weights.own_norms, &spec.shared, &weights.shared) {
                        (Some(norms), Some(spec), Some(mlp)) => {
                            let (experts, network) = ((experts, norms), (spec, mlp));
                            self.use_experts_beside(worker, own, index, layer, experts, network);
                        }
                        _ => self.use_experts(worker, own, index, layer, experts),
                    }
                }
                _ => {}
            }
            if let Some(streams) = &layer.streams {
                self.correct_streams(worker, own, index, streams);
            }
            if let Some(per_layer) = &layer.per_layer {
                self.add_per_layer(worker, own, index, per_layer);
            }
            if layer.output_scale != 1.0 {
                self.scale_output(worker, own, index, layer.output_scale);
            }
        }
        let (total, most) = (self.logit_tokens.len(), self.scratch.logit_rows);
        if let Some(projections) = &self.model.weights.streams
            && total > 0
        {
            self.merge_streams(worker, own, projections);
        }
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

    /// Attention of layer `index`, added to the residual stream.
    fn mix_by_attention<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &'w LayerWeights,
        (spec, weights): (&'w AttentionSpec, &'w AttentionWeights),
    ) {
        self.project_qkv(worker, own, index, layer, (spec, weights));
        barrier_wait(worker, own, Phase::Qkv);
        if spec.qk_norm_whole {
            self.norm_heads(worker, index, (spec, weights));
            barrier_wait(worker, own, Phase::Qkv);
        }
        if worker.index() == 0 && self.is_narrowed(index) {
            self.narrow_hidden(); // the attention phase does not read the residual stream
        }
        self.attend(worker, own, index, (spec, weights));
        barrier_wait(worker, own, Phase::Attention);
        if self.rows_after_attention(index) == 0 {
            return;
        }
        self.add_mixer(worker, own, index, layer, (&weights.o, None));
    }

    /// The mixer's output, normalized with `norm` if there is one, projected and added to the residual stream.
    fn add_mixer<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &'w LayerWeights,
        (o, norm): (&'w Linear, Option<&'w Norm>),
    ) {
        let branched = self.is_branched(layer.mixer_post_norm.as_deref());
        self.project_output(worker, own, index, (o, norm), branched);
        barrier_wait(worker, own, Phase::Output);
        if branched {
            let norm = layer.mixer_post_norm.as_deref();
            self.add_branch(worker, index, ADD_MIXER, norm);
            barrier_wait(worker, own, Phase::Output);
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

    /// The residual stream, normalized with `norm` if there is one. Its outliers are kept.
    fn hidden<'a>(&'a self, norm: Option<&'a Norm>) -> Source<'a> {
        Source {
            rows: self.hidden_rows(),
            index: None,
            norm,
            keep_outliers: true,
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
    fn attend<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        of: (&AttentionSpec, &AttentionWeights),
    ) {
        let work = self.work(index);
        let (items, counter) = (&work.items, self.counter(index, ATTENTION));
        let mut parts = Parts::of_cost(worker, counter, &work.costs);
        while let Some(part) = parts.next() {
            for at in part
                .clone()
                .filter(|&at| self.has_queries(index, &items[at]))
            {
                // The item that this worker probably computes next: its first keys and values are prefetched.
                let next = parts.after(&part, at).map(|next| &items[next]);
                let ahead = next.filter(|next| next.split.is_none());
                let ahead = ahead.map(|next| self.task(index, of, next));
                self.attend_to(own, index, of, &items[at], ahead.as_ref());
            }
        }
    }

    /// Whether the output of an item of a layer's attention is needed.
    fn has_queries(&self, index: usize, item: &Item) -> bool {
        let tokens = item.tokens.start as usize..item.tokens.end as usize;
        let mut tokens = self.work(index).tokens[tokens]
            .iter()
            .map(|&token| token as usize);
        !self.is_narrowed(index) || tokens.any(|token| self.needs_logits(token..token + 1))
    }

    /// Compute one item of a layer's attention.
    fn attend_to(
        &self,
        own: &mut WorkerScratch,
        index: usize,
        of: (&AttentionSpec, &AttentionWeights),
        item: &Item,
        ahead: Option<&Task<'_>>,
    ) {
        let task = self.task(index, of, item);
        let (work, head_dim) = (self.work(index), of.0.head_dim);
        let (level, scratch) = (self.model.level, &mut own.attention);
        let Some(split) = item.split else {
            // SAFETY: the level was checked at load; queries and outputs of the item's tokens and heads are inside
            // their matrices, and no two items share them.
            unsafe {
                attend(level, &task, None, ahead, scratch);
                if of.1.gate.is_some() {
                    self.gate_outputs(&task, head_dim);
                }
            }
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
            attend(level, &task, Some((index, part)), ahead, scratch);
            let arrived = work.arrived[slot].fetch_add(1, Ordering::AcqRel) + 1;
            if arrived.is_multiple_of(split.count) {
                combine(level, &task, first, split_stride, scratch);
                if of.1.gate.is_some() {
                    self.gate_outputs(&task, head_dim);
                }
            }
        }
    }

    /// Multiply a task's outputs with the sigmoid of its heads' gates.
    ///
    /// # Safety
    /// The task's outputs are complete, and no other worker uses them.
    unsafe fn gate_outputs(&self, task: &Task<'_>, head_dim: usize) {
        let stride = self.scratch.strides.attention;
        for &token in task.tokens {
            for head in task.head..task.head + task.heads {
                let at = token as usize * stride + head * head_dim;
                // SAFETY: by contract; the gates were written before a barrier. The level was checked at load.
                unsafe {
                    let out = self.scratch.attention.slice_mut(at, head_dim);
                    let gate = self.scratch.attention_gate.slice(at, head_dim);
                    sigmoid_gate(self.model.level, out, gate);
                }
            }
        }
    }

    /// The attention items of layer `index`.
    fn work(&self, index: usize) -> &Work {
        &self.attention[self.model.work_of[index]]
    }

    fn task<'t>(
        &'t self,
        index: usize,
        (spec, weights): (&AttentionSpec, &'t AttentionWeights),
        item: &Item,
    ) -> Task<'t> {
        let (work, strides) = (self.work(index), &self.scratch.strides);
        let (tables, table_width) = self.tables_of(weights.cache);
        let tokens = item.tokens.start as usize..item.tokens.end as usize;
        let segments = item.segments.start as usize..item.segments.end as usize;
        Task {
            kv: self.model.kv.layer(weights.cache),
            kv_head: item.head as usize / spec.group_size(),
            head: item.head as usize,
            heads: item.heads as usize,
            window: spec.window,
            scale: spec.scale,
            softcap: spec.softcap,
            sinks: weights.sinks.as_deref(),
            tokens: &work.tokens[tokens],
            positions: &self.plan.positions,
            segments: &work.segments[segments],
            tables,
            table_width,
            q: self.scratch.q.ptr(),
            q_token_stride: strides.q,
            q_head_stride: strides.head,
            out: self.scratch.attention.ptr(),
            out_token_stride: strides.attention,
        }
    }

    /// Output projection: added to the residual stream, or written as a branch.
    fn project_output<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        (o, norm): (&Linear, Option<&Norm>),
        branched: bool,
    ) {
        let source = Source {
            rows: self.attention_rows(),
            index: self.is_narrowed(index).then_some(self.logit_tokens),
            norm,
            keep_outliers: norm.is_some(),
        };
        let rows = self.rows_after_attention(index);
        let counter = self.prepare_counter(index, OUTPUT);
        let activations = self.prepare(worker, own, rows, source, &[o], counter);
        let counter = self.counter(index, OUTPUT);
        let target = self.branch_target(branched);
        self.multiply_into(worker, own, rows, &activations, o, target, counter);
    }

    /// Multiply `rows` prepared rows with all of `linear` into `target`.
    #[allow(clippy::too_many_arguments, reason = "one call of a hot path")]
    fn multiply_into<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        rows: usize,
        activations: &Activations,
        linear: &Linear,
        target: Target,
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
                    rows: panel_columns(target.rows, &these),
                    ..target
                };
                let upcoming = upcoming.map(|item| linear.matrix.panel(sliced.get(item).0 * each));
                // SAFETY: only this worker uses these rows of the panels' columns of the target.
                unsafe { Self::multiply(&mut gemm, linear, these, rows, upcoming, target) };
            }
        }
    }

    /// Logits of `part` of the tokens that need them.
    fn lm_head<'w>(&'w self, worker: &'w Worker<'w>, own: &mut WorkerScratch, part: Range<usize>) {
        let (weights, rows) = (&self.model.weights, part.len());
        let hidden = self.hidden(Some(&weights.final_norm));
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
            let target = Target::replace(panel_columns(self.logit_rows(), &panels));
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
            let spec = &self.model.spec;
            if spec.logit_softcap > 0.0 || spec.logit_multiplier != 1.0 {
                // SAFETY: the level was checked at load.
                unsafe {
                    softcap(
                        self.model.level,
                        logits,
                        spec.logit_multiplier,
                        spec.logit_softcap,
                    )
                };
            }
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
