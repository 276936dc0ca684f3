//! One ragged step: every scheduled token through every layer, and the next tokens sampled.
//!
//! Hot path; runs on every worker at once. A layer is five phases, each ended by a barrier:
//! norm + QKV + rotary positions + cache write, attention, output projection + residual, norm + gate/up +
//! SiLU, down + residual. Workers divide panels of the weights (see `work_share.rs`) and take attention and
//! sampling items from a counter; which worker computes an item never changes its bits. With few rows each
//! worker prepares the activations for itself; with many they are shared out, for one barrier more; those of the down
//! projection are quantised where gate and up are joined. Do not allocate, lock or log here.

mod activations;
mod heads;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::activations::{Joining, Source, scale_mode_for};
use crate::activation_quant::quantize_gated;
use crate::attention::{Item, Task, Work, attend, combine};
use crate::dispatch::Level;
use crate::gemm::{Activations, Gemm, Output};
use crate::kv_cache::KvCache;
use crate::norm::silu_panel;
use crate::pack::PANEL_COLUMNS;
use crate::pack::layout::GROUP;
use crate::phase_clock::Phase;
use crate::plan::{Plan, StepInput};
use crate::pool::Worker;
use crate::rope::Rope;
use crate::sampler::{MAX_TOP_LOGPROBS, RowContext, sample, score};
use crate::scratch::{Scratch, WorkerScratch};
use crate::spec::ModelSpec;
use crate::weights::{LayerWeights, Linear, Weights};
use crate::work_share::{Parts, SlicedItems};

/// A model ready to run.
#[derive(Debug)]
pub struct Model {
    pub spec: ModelSpec,
    pub weights: Weights,
    pub rope: Rope,
    pub kv: KvCache,
    pub level: Level,
}

/// Where a product goes: row `r`, first panel's column `c` at `out[r * stride + c]`.
#[derive(Clone, Copy)]
struct Target {
    out: *mut f32,
    stride: usize,
    /// Add to what stands there.
    accumulate: bool,
}

/// Phases of a layer.
const PHASES: usize = 5;
/// Counters of a layer: one for the work of each phase, one for what is prepared before it.
pub const COUNTERS: usize = 2 * PHASES;
const QKV: usize = 0;
const ATTENTION: usize = 1;
const OUTPUT: usize = 2;
const GATE_UP: usize = 3;
const DOWN: usize = 4;
/// Behind the layers': panels of lm_head, rows of logits, and tokens to look up.
const LM_HEAD: usize = 0;
const LOGITS: usize = 1;
const EMBED: usize = 2;

/// What all workers of a step share.
pub struct Step<'a> {
    pub model: &'a Model,
    pub scratch: &'a Scratch,
    pub plan: &'a Plan,
    pub input: &'a StepInput<'a>,
    pub attention: &'a Work,
    /// Flat tokens whose logits are needed: those of the plan's samples, then those of its scores.
    pub logit_tokens: &'a [usize],
    /// Whether rows that need no logits leave in the last layer: their keys and values are written there, and nothing
    /// else of them is read. See [`narrows`].
    pub narrow: bool,
    /// [`COUNTERS`] a layer, then as many for what is before and behind the layers; zero at the start.
    pub counters: &'a [AtomicUsize],
    /// Whether the workers' clocks run.
    pub timed: bool,
}

/// Whether the rows that need logits can move to the front of the residual stream, each to its place among them:
/// some rows need none, and the others are named once and in order.
pub fn narrows(logit_tokens: &[usize], tokens: usize) -> bool {
    logit_tokens.len() < tokens && logit_tokens.is_sorted_by(|one, next| one < next)
}

// SAFETY: the raw pointers inside are reached through `Scratch` and `Plan`, whose parts the phases below
// give to one worker each between two barriers; everything else is read-only.
unsafe impl Sync for Step<'_> {}

impl Step<'_> {
    /// One worker's part of the step.
    pub fn run<'w>(&'w self, worker: &'w Worker<'w>) {
        // SAFETY: each worker takes its own, once.
        let own = unsafe { self.scratch.workers.get(worker.index()) };
        own.clock.start(self.timed);
        self.embed(worker);
        meet(worker, own, Phase::Embed);
        for (index, layer) in self.model.weights.layers.iter().enumerate() {
            self.project_qkv(worker, own, index, layer);
            meet(worker, own, Phase::Qkv);
            if worker.index() == 0 && self.is_narrowed(index) {
                self.narrow_hidden(); // nobody reads the residual stream in this phase
            }
            self.attend(worker, own, index);
            meet(worker, own, Phase::Attention);
            if self.rows_after_attention(index) == 0 {
                break; // the last layer, and no logits are needed
            }
            self.project_output(worker, own, index, layer);
            meet(worker, own, Phase::Output);
            self.gate_and_up(worker, own, index, layer);
            meet(worker, own, Phase::GateUp);
            self.project_down(worker, own, index, layer);
            meet(worker, own, Phase::Down);
        }
        let (total, most) = (self.logit_tokens.len(), self.scratch.logit_rows);
        for start in (0..total).step_by(most) {
            let part = start..total.min(start + most);
            if start > 0 {
                meet(worker, own, Phase::Sample); // the part before is used up
            }
            self.lm_head(worker, own, part.clone());
            if worker.index() == 0 {
                self.logit_counter().store(start, Ordering::Relaxed);
            }
            meet(worker, own, Phase::LmHead);
            if worker.index() == 0 {
                // For the next part, which begins behind a barrier.
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

    /// From which workers take a phase's work.
    fn counter(&self, layer: usize, phase: usize) -> &AtomicUsize {
        &self.counters[layer * COUNTERS + phase]
    }

    /// From which they take tiles of rows before that, to prepare them.
    fn prepare_counter(&self, layer: usize, phase: usize) -> &AtomicUsize {
        self.counter(layer, PHASES + phase)
    }

    fn tokens(&self) -> usize {
        self.plan.token_ids.len()
    }

    /// Whether in layer `index` only rows that need logits have queries and go on.
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
        let (hidden, stride) = (self.scratch.hidden.ptr(), self.scratch.strides.hidden);
        for (row, &token) in self.logit_tokens.iter().enumerate() {
            // SAFETY: rows of the residual stream, which this worker alone uses now. Tokens ascend, so a row is
            // never written before it was moved.
            unsafe {
                let (from, to) = (hidden.add(token * stride), hidden.add(row * stride));
                from.copy_to(to, self.model.spec.hidden_size);
            }
        }
    }

    fn embed<'w>(&'w self, worker: &'w Worker<'w>) {
        let (scratch, width) = (self.scratch, self.model.spec.hidden_size);
        let (tokens, counter) = (self.tokens(), self.counter(self.layers(), EMBED));
        for token in Parts::new(worker, counter, tokens, tokens).flatten() {
            // SAFETY: this worker's rows of the residual stream.
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

    /// The residual stream, normalised with `norm`.
    fn hidden<'a>(&'a self, norm: &'a [f32]) -> Source<'a> {
        let scratch = self.scratch;
        Source {
            rows: scratch.hidden.ptr(),
            stride: scratch.strides.hidden,
            index: None,
            norm: Some(norm),
        }
    }

    /// Multiply rows `rows` with panels `panels` of `linear`; the first one's columns go to
    /// `target`, the next one's 16 floats further. The panel at `upcoming` is asked for after these.
    ///
    /// # Safety
    /// `gemm` is of rows that `linear` takes; `target` is valid for as many rows of the panels' columns, and
    /// this worker's alone.
    unsafe fn multiply(
        gemm: &mut Gemm<'_>,
        linear: &Linear,
        panels: Range<usize>,
        rows: Range<usize>,
        upcoming: Option<*const u8>,
        target: Target,
    ) {
        let matrix = &linear.matrix;
        let output = Output {
            out: target.out,
            stride: target.stride,
            accumulate: target.accumulate,
            bias: linear.panel_bias(panels.start),
        };
        let next = upcoming.unwrap_or(matrix.panel(panels.end - 1));
        // SAFETY: by contract.
        unsafe { gemm.panels_of_rows(matrix, panels, rows, next, output) };
    }

    /// Phase b: attention, item by item.
    fn attend<'w>(&'w self, worker: &'w Worker<'w>, own: &mut WorkerScratch, index: usize) {
        let (items, counter) = (&self.attention.items, self.counter(index, ATTENTION));
        let mut parts = Parts::taken(worker, counter, items.len());
        while let Some(part) = parts.next() {
            for at in part
                .clone()
                .filter(|&at| self.has_queries(index, &items[at]))
            {
                // Probably what this worker does next: what it begins with is fetched meanwhile.
                let next = parts.after(&part, at).map(|next| &items[next]);
                let ahead = next.filter(|next| next.split.is_none());
                let ahead = ahead.map(|next| self.task(index, next));
                self.attend_to(own, index, &items[at], ahead.as_ref());
            }
        }
    }

    /// Whether something reads what comes of an item of a layer's attention.
    fn has_queries(&self, index: usize, item: &Item) -> bool {
        let tokens = item.tokens.start as usize..item.tokens.end as usize;
        let mut tokens = self.attention.tokens[tokens]
            .iter()
            .map(|&token| token as usize);
        !self.is_narrowed(index) || tokens.any(|token| self.needs_logits(token..token + 1))
    }

    /// One item of a layer's attention.
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
            // SAFETY: the level was checked at load; the item's heads of its tokens are inside both
            // matrices, and each item has its own.
            unsafe { attend(level, kv, &task, None, ahead, scratch) };
            return;
        };
        let partials = &self.scratch.partials;
        let (slot, index) = (split.slot as usize, split.index as usize);
        // SAFETY: as above; a slot's splits have parts of their own, and whoever comes last (all others'
        // writes are visible then) reads them all.
        unsafe {
            let first = partials.of_slot(slot);
            let part = first.add(index * partials.split_stride);
            attend(level, kv, &task, Some((index, part)), ahead, scratch);
            let arrived = self.attention.arrived[slot].fetch_add(1, Ordering::AcqRel) + 1;
            if arrived.is_multiple_of(split.count) {
                let head_dim = self.model.spec.head_dim;
                combine(
                    level,
                    &task,
                    head_dim,
                    first,
                    partials.split_stride,
                    scratch,
                );
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

    /// Phase c: output projection, added to the residual stream.
    fn project_output<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
    ) {
        let scratch = self.scratch;
        let source = Source {
            rows: scratch.attention.ptr(),
            stride: scratch.strides.attention,
            index: self.is_narrowed(index).then_some(self.logit_tokens),
            norm: None,
        };
        let rows = self.rows_after_attention(index);
        let counter = self.prepare_counter(index, OUTPUT);
        let activations = self.prepare(worker, own, rows, source, &[&layer.o], counter);
        let counter = self.counter(index, OUTPUT);
        self.add_product(worker, own, rows, &activations, &layer.o, counter);
    }

    /// Phase e: down projection, added to the residual stream.
    fn project_down<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
    ) {
        let (scratch, rows) = (self.scratch, self.rows_after_attention(index));
        let activations = match self.joined(&layer.down, rows) {
            Some(joined) => Activations {
                quant: Some(joined),
                scale_mode: scale_mode_for(&[&layer.down]),
                float: std::ptr::null(),
                float_stride: 0,
            },
            None => {
                let source = Source {
                    rows: scratch.gate.ptr(),
                    stride: scratch.strides.gate,
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

    fn add_product<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        rows: usize,
        activations: &Activations,
        linear: &Linear,
        counter: &'w AtomicUsize,
    ) {
        let scratch = self.scratch;
        // SAFETY: the level was checked at load; so many rows were prepared, for these users.
        let mut gemm = unsafe { Gemm::new(self.model.level, activations, rows, &mut own.panel) };
        let (panels, each) = (linear.matrix.panels(), gemm.panels_at_once(&linear.matrix));
        let sliced = SlicedItems::new(panels.div_ceil(each), rows, worker.size());
        let mut parts = Parts::new(worker, counter, sliced.count(), rows);
        while let Some(part) = parts.next() {
            for item in part.clone() {
                let (unit, rows) = sliced.get(item);
                let upcoming = parts.after(&part, item);
                let first = unit * each;
                // SAFETY: these rows of the panels' columns of the residual stream are this worker's alone.
                unsafe {
                    let target = Target {
                        out: scratch.hidden.ptr().add(first * PANEL_COLUMNS),
                        stride: scratch.strides.hidden,
                        accumulate: true,
                    };
                    let upcoming =
                        upcoming.map(|item| linear.matrix.panel(sliced.get(item).0 * each));
                    Self::multiply(
                        &mut gemm,
                        linear,
                        first..panels.min(first + each),
                        rows,
                        upcoming,
                        target,
                    );
                }
            }
        }
    }

    /// Phase d: gate and up, joined while they are in the cache, and quantised at once if the down projection
    /// takes quantised rows: a group of its inputs is two panels.
    fn gate_and_up<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
    ) {
        let (scratch, rows) = (self.scratch, self.rows_after_attention(index));
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
        let (level, gate, up) = (self.model.level, own.gate.ptr(), own.up.ptr());
        let joining = self.joining(&layer.down, rows);
        let panels = layer.gate.matrix.panels();
        // Panels that are not divided among workers, and columns that are joined at once.
        let each = if joining == Joining::Floats {
            1
        } else {
            GROUP / PANEL_COLUMNS
        };
        let columns = if joining == Joining::Groups {
            GROUP
        } else {
            PANEL_COLUMNS
        };
        let joined = columns / PANEL_COLUMNS;
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
                for first in panels.clone().step_by(joined) {
                    let these = first..first + joined;
                    let next = if these.end < panels.end {
                        these.end
                    } else {
                        let upcoming = parts.after(&part, item);
                        upcoming.map_or(first, |item| sliced.get(item).0 * each)
                    };
                    let output = |out: *mut f32, linear: &Linear| Output {
                        out,
                        stride: columns,
                        accumulate: false,
                        bias: linear.panel_bias(first),
                    };
                    let (gate_out, up_out) = (output(gate, &layer.gate), output(up, &layer.up));
                    let (gate_panels, up_panels) = (&layer.gate.matrix, &layer.up.matrix);
                    let (next_up, next) = (up_panels.panel(first), gate_panels.panel(next));
                    let start = slice.start * columns;
                    let (gate, up) = (gate.wrapping_add(start), up.wrapping_add(start));
                    // SAFETY: these columns of the slice's joined rows and the whole of `gate` and `up` are this worker's.
                    unsafe {
                        for (matrix, next, out) in
                            [(gate_panels, next_up, gate_out), (up_panels, next, up_out)]
                        {
                            let (panels, rows) = (these.clone(), slice.clone());
                            gemm.panels_of_rows(matrix, panels, rows, next, out);
                        }
                        if joining == Joining::Groups {
                            let to = self.joined_group(unit, slice.start, groups);
                            quantize_gated(level, gate, up, slice.len(), scale_mode, to);
                        } else {
                            let stride = scratch.strides.gate;
                            let out = scratch.gate.ptr().add(slice.start * stride);
                            let out = out.add(first * PANEL_COLUMNS);
                            silu_panel(level, gate, up, out, stride, slice.len());
                        }
                    }
                }
            }
            if joining == Joining::Parts {
                // SAFETY: as above; so few rows are not cut into slices.
                unsafe { self.quantize_joined(part, rows, &layer.down) };
            }
        }
    }

    /// Logits of `part` of the tokens that need them.
    fn lm_head<'w>(&'w self, worker: &'w Worker<'w>, own: &mut WorkerScratch, part: Range<usize>) {
        let (scratch, weights) = (self.scratch, &self.model.weights);
        let (rows, stride) = (part.len(), scratch.strides.logits);
        let hidden = self.hidden(&weights.final_norm);
        let source = if self.narrow {
            Source {
                rows: hidden.rows.wrapping_add(part.start * hidden.stride),
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
            // SAFETY: these panels' columns of the logits are this worker's alone.
            unsafe {
                let out = scratch.logits.ptr().add(panels.start * PANEL_COLUMNS);
                let target = Target {
                    out,
                    stride,
                    accumulate: false,
                };
                let linear = &weights.lm_head;
                let upcoming = parts.upcoming().map(|panel| linear.matrix.panel(panel));
                Self::multiply(&mut gemm, linear, panels, 0..rows, upcoming, target);
            }
        }
    }

    fn logit_counter(&self) -> &AtomicUsize {
        self.counter(self.layers(), LOGITS)
    }

    /// Draw from, or score by, the logits of `part`; the logits are changed.
    fn use_logits(&self, worker: &Worker<'_>, own: &mut WorkerScratch, part: Range<usize>) {
        let (strides, vocab) = (&self.scratch.strides, self.model.spec.vocab_size);
        while worker.may_work() {
            let next = self.logit_counter().fetch_add(1, Ordering::Relaxed);
            if next >= part.end {
                return;
            }
            // SAFETY: this row of logits is this worker's alone.
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

    /// Draw the plan's sample `at`.
    fn sample(&self, own: &mut WorkerScratch, at: usize, logits: &mut [f32]) {
        let (results, sample_of) = (&self.scratch.results, &self.plan.samples[at]);
        let run = &self.plan.runs[sample_of.run as usize];
        let known = run.num_tokens + sample_of.drafts as usize;
        let (start, count) = run.bias;
        let words = self.model.spec.vocab_size.div_ceil(32);
        let masks = self.input.mask_bits;
        let context = RowContext {
            params: &run.sampling,
            tokens: &self.input.token_table[run.row * self.input.token_stride..][..known],
            num_prompt_tokens: run.num_prompt_tokens,
            position: known as u64,
            bias_ids: &self.input.bias_ids[start..start + count],
            bias_values: &self.input.bias_values[start..start + count],
            mask: run.mask.map(|mask| &masks[mask * words..][..words]),
        };
        // SAFETY: this entry of the results is this worker's alone; the level was checked at load.
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

    /// Score the plan's entry `at`.
    fn score(&self, own: &mut WorkerScratch, at: usize, logits: &[f32]) {
        let (results, wanted) = (&self.scratch.score_results, &self.plan.scores[at]);
        let (top, count) = (at * MAX_TOP_LOGPROBS, wanted.top as usize);
        // SAFETY: this entry of the results is this worker's alone; the level was checked at load.
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

/// The end of a phase: wait for all workers.
fn meet(worker: &Worker<'_>, own: &WorkerScratch, phase: Phase) {
    own.clock.lap(phase);
    worker.barrier();
    own.clock.lap(Phase::Wait);
}
