//! Recurrent mixers: projection with convolution, and the heads' recurrences.
//!
//! A convolution is over the tokens of a run and of each channel by itself, so the worker that projects a panel of channels
//! applies it while the panel is in the CPU cache: a short convolution is one phase. Heads need all channels of a token and
//! are a phase of their own. The items of both have their own parts of the runs' states.

use std::ops::Range;

use super::rows_view::RowsView;
use super::{ATTENTION, QKV, Step, Target, barrier_wait};
use crate::gemm::Gemm;
use crate::norm::rms_norm_in_place;
use crate::pack::PANEL_COLUMNS;
use crate::pack::layout::GROUP;
use crate::phase_clock::Phase;
use crate::plan::Run;
use crate::pool::Worker;
use crate::recurrent::conv::{Columns, ConvRun, ConvWeights, convolve_gated, convolve_silu};
use crate::recurrent::head::{HeadRun, TokenRows};
use crate::scratch::WorkerScratch;
use crate::weights::{LayerWeights, Linear, ShortConvWeights, StateHeadsWeights};
use crate::work_share::Parts;

/// Panels of a projection that are multiplied together.
const PANELS: usize = GROUP / PANEL_COLUMNS;

impl Step<'_> {
    /// The short convolution of layer `index`, added to the residual stream.
    pub(super) fn mix_by_short_conv<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &'w LayerWeights,
        mixer: &'w ShortConvWeights,
    ) {
        self.short_conv(worker, own, index, layer, mixer);
        barrier_wait(worker, own, Phase::Qkv);
        self.add_mixer(worker, own, index, layer, (&mixer.o, None));
    }

    /// The heads with a state of layer `index`, added to the residual stream.
    pub(super) fn mix_by_state_heads<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &'w LayerWeights,
        mixer: &'w StateHeadsWeights,
    ) {
        self.project_heads(worker, own, index, layer, mixer);
        barrier_wait(worker, own, Phase::Qkv);
        self.scan_heads(worker, own, index, mixer);
        barrier_wait(worker, own, Phase::Attention);
        self.add_mixer(worker, own, index, layer, (&mixer.o, mixer.norm_of_all()));
    }

    /// Project the inputs of a short convolution, apply it, and write the outputs where those of attention would be.
    fn short_conv<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
        mixer: &ShortConvWeights,
    ) {
        let rows = self.tokens();
        let users = [&mixer.input, &mixer.before, &mixer.after];
        let source = self.hidden(layer.mixer_norm.as_ref());
        let counter = self.prepare_counter(index, QKV);
        let activations = self.prepare(worker, own, rows, source, &users, counter);
        // SAFETY: the level was checked at load; so many rows were prepared, for these users.
        let mut gemm = unsafe { Gemm::new(self.model.level, &activations, rows, &mut own.panel) };
        let gates = RowsView::of(&own.gate, GROUP);
        let input = RowsView::of(&own.up, PANEL_COLUMNS);
        let before = gates.columns(0, PANEL_COLUMNS);
        let after = gates.columns(PANEL_COLUMNS, PANEL_COLUMNS);
        let panels = mixer.input.matrix.panels();
        let mut parts = Parts::new(worker, self.counter(index, QKV), panels, rows);
        while let Some(part) = parts.next() {
            for panel in part.clone() {
                let next = parts.after(&part, panel).unwrap_or(panel);
                let output = self
                    .attention_rows()
                    .columns(panel * PANEL_COLUMNS, PANEL_COLUMNS);
                // SAFETY: only this worker uses its own rows, the panel's columns and the panel's history.
                unsafe {
                    let products = [
                        (&mixer.before, before, mixer.after.matrix.panel(panel)),
                        (&mixer.after, after, mixer.input.matrix.panel(panel)),
                        (&mixer.input, input, mixer.before.matrix.panel(next)),
                    ];
                    for (linear, to, upcoming) in products {
                        let target = Target::replace(to);
                        let (panels, upcoming) = (panel..panel + 1, Some(upcoming));
                        Self::multiply(&mut gemm, linear, panels, 0..rows, upcoming, target);
                    }
                    for run in &self.plan.runs {
                        let conv = self.conv_run(index, &mixer.conv, panel, run, input, output);
                        let gate = |gate: RowsView| columns_of(gate, run.start);
                        convolve_gated(self.model.level, conv, gate(before), gate(after));
                    }
                }
            }
        }
    }

    /// Project the inputs of heads with a state, and apply their convolution.
    fn project_heads<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
        mixer: &StateHeadsWeights,
    ) {
        let (rows, layout) = (self.tokens(), mixer.heads.layout());
        let projections = [
            (Some(&mixer.input), 0),
            (Some(&mixer.z), layout.z),
            (mixer.strength.as_ref(), layout.strength),
            (Some(&mixer.time_step), layout.time_step),
        ];
        let mut users = [&mixer.input; 4];
        for (user, (linear, _)) in users.iter_mut().zip(projections) {
            *user = linear.unwrap_or(&mixer.input);
        }
        let source = self.hidden(layer.mixer_norm.as_ref());
        let counter = self.prepare_counter(index, QKV);
        let activations = self.prepare(worker, own, rows, source, &users, counter);
        // SAFETY: the level was checked at load; so many rows were prepared, for these users.
        let mut gemm = unsafe { Gemm::new(self.model.level, &activations, rows, &mut own.panel) };
        let units = |linear: &Linear| linear.matrix.panels().div_ceil(PANELS);
        let item = |mut at: usize| {
            for (which, (linear, column)) in projections.into_iter().enumerate() {
                let Some(linear) = linear else { continue };
                if at < units(linear) {
                    let first = at * PANELS;
                    let panels = first..linear.matrix.panels().min(first + PANELS);
                    return (which == 0, linear, panels, column);
                }
                at -= units(linear);
            }
            unreachable!("items are those of the projections")
        };
        let all = projections.iter().filter_map(|(linear, _)| *linear);
        let count = all.map(units).sum();
        let own_rows = RowsView::of(&own.gate, GROUP);
        let mut parts = Parts::new(worker, self.counter(index, QKV), count, rows);
        while let Some(part) = parts.next() {
            for at in part.clone() {
                let (is_convolved, linear, panels, column) = item(at);
                let upcoming = parts.after(&part, at).map(|next| {
                    let (_, linear, panels, _) = item(next);
                    linear.matrix.panel(panels.start)
                });
                let columns = panels.len() * PANEL_COLUMNS;
                let output = self
                    .mixed_rows()
                    .columns(column + panels.start * PANEL_COLUMNS, columns);
                let target = Target::replace(if is_convolved { own_rows } else { output });
                // SAFETY: only this worker uses its own rows, the panels' columns and the panels' histories.
                unsafe {
                    let each = panels.clone();
                    Self::multiply(&mut gemm, linear, panels, 0..rows, upcoming, target);
                    if is_convolved {
                        self.convolve(index, &mixer.conv, each, own_rows, output);
                    }
                }
            }
        }
    }

    /// Convolve panels `panels` of all runs from `input` to `output`, whose columns begin at the first of them.
    ///
    /// # Safety
    /// No other worker uses these columns and the panels' histories.
    unsafe fn convolve(
        &self,
        index: usize,
        conv: &ConvWeights,
        panels: Range<usize>,
        input: RowsView,
        output: RowsView,
    ) {
        for (at, panel) in panels.enumerate() {
            let of_panel = |rows: RowsView| rows.columns(at * PANEL_COLUMNS, PANEL_COLUMNS);
            let (input, output) = (of_panel(input), of_panel(output));
            for run in &self.plan.runs {
                let conv = self.conv_run(index, conv, panel, run, input, output);
                // SAFETY: by contract; the level was checked at load.
                unsafe { convolve_silu(self.model.level, conv) };
            }
        }
    }

    /// The convolution of a run's tokens, from columns of the step's rows to others.
    fn conv_run<'a>(
        &self,
        index: usize,
        weights: &'a ConvWeights,
        panel: usize,
        run: &Run,
        input: RowsView,
        output: RowsView,
    ) -> ConvRun<'a> {
        let histories = self.model.states.conv(run.state_slot, index);
        ConvRun {
            weights,
            panel,
            history: histories.wrapping_add(panel * weights.history_len()),
            fresh: run.first_position == 0,
            tokens: run.tokens,
            input: columns_of(input, run.start),
            output: columns_of(output, run.start),
        }
    }

    /// The recurrences of the heads of all runs; writes their outputs where those of attention would be.
    fn scan_heads<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        mixer: &StateHeadsWeights,
    ) {
        // Heads that are normalized together are one item, unless all are: their norm is applied before the projection.
        let (heads, runs) = (&mixer.heads, &self.plan.runs);
        let norm = mixer.norm_by_key();
        let each = norm.map_or(1, |_| heads.count / heads.key_count);
        let items = heads.count / each * runs.len();
        let counter = self.counter(index, ATTENTION);
        for at in Parts::dynamic(worker, counter, items).flatten() {
            let (unit, run) = (at / runs.len(), &runs[at % runs.len()]);
            let these = unit * each..(unit + 1) * each;
            for head in these.clone() {
                // SAFETY: no other worker uses the head's state of this run and its columns of the outputs.
                unsafe {
                    let head = self.head_run(index, mixer, run, head);
                    head.run(self.model.level, &mut own.scan);
                }
            }
            if let Some(norm) = norm {
                let width = heads.shape.value_dim;
                let columns = these.start * width..these.end * width;
                let rows = self.attention_rows().columns(columns.start, columns.len());
                let weight = &norm.weight[columns];
                for token in run.start..run.start + run.tokens {
                    let (level, eps) = (self.model.level, self.model.spec.norm_eps);
                    // SAFETY: as above.
                    unsafe { rms_norm_in_place(level, rows.row_mut(token), weight, eps) };
                }
            }
        }
    }

    fn head_run<'a>(
        &self,
        index: usize,
        mixer: &'a StateHeadsWeights,
        run: &Run,
        head: usize,
    ) -> HeadRun<'a> {
        let states = self.model.states.heads(run.state_slot, index);
        let rows = |view: RowsView| TokenRows {
            start: view.ptr(run.start),
            stride: view.stride(),
        };
        HeadRun {
            heads: &mixer.heads,
            weights: &mixer.of_heads,
            head,
            tokens: run.tokens,
            projected: rows(self.mixed_rows()),
            output: rows(self.attention_rows()),
            state: states.wrapping_add(head * mixer.heads.shape.state_len()),
            fresh: run.first_position == 0,
        }
    }

    /// Rows of the projected inputs of heads with a state.
    fn mixed_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.mixed, self.scratch.strides.mixed)
    }
}

/// 16 columns, from row `first` on.
fn columns_of(rows: RowsView, first: usize) -> Columns {
    Columns {
        start: rows.ptr(first),
        stride: rows.stride(),
    }
}
