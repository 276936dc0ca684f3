//! The feed-forward of a layer of experts, in three phases.
//!
//! 1. Router: logits of all rows. With many rows the workers then divide the choice of experts; with few, each worker
//!    chooses for itself. Every worker groups the rows by expert for itself, which is cheaper than a barrier.
//! 2. Gate and up of all experts that are used: an item is 32 columns of one expert, for all rows that chose it.
//! 3. Down: an item is a few columns of the output, for all experts. Outputs of a row's experts stay in the worker's own
//!    memory until they are added, in the order of the experts, so that a row's bits do not depend on the other rows.
//!
//! Of the experts' weights, only those that a row chose are read. The network that all rows use besides, if there is one, is
//! one more expert in phases 2 and 3.

use std::ops::Range;

use super::activations::quant_form;
use super::rows_view::RowsView;
use super::{ADD_FFN, CHOOSE, DOWN, GATE_UP, ROUTER, SHARED_ROUTER, Step, Target, barrier_wait};
use crate::activation::{activate_panel, sigmoid};
use crate::activation_quant::{TILE_ROWS, quantize_gated};
use crate::arena::Buffer;
use crate::experts::gather::gather;
use crate::experts::routing::Router;
use crate::experts::rows::{ExpertRows, UsedExpert};
use crate::experts::weighted_sum::{WeightedRow, add_weighted_sum};
use crate::gemm::{Activations, Gemm, PanelScratch};
use crate::pack::PANEL_COLUMNS;
use crate::pack::layout::GROUP;
use crate::phase_clock::Phase;
use crate::pool::Worker;
use crate::scratch::{ActivationBuffers, QuantBuffers, REDUNDANT_ROWS, WorkerScratch};
use crate::spec::{Activation, ExpertsSpec, MAX_USED_EXPERTS};
use crate::weights::{ExpertWeights, LayerWeights, Linear, MlpWeights};
use crate::work_share::Parts;

/// Rows of an expert whose computation takes about as long as reading its weights.
const FREE_ROWS: usize = 8;

/// With many rows, items of phase 3 for each worker.
const ITEMS_EACH: usize = 4;

/// A layer's experts.
#[derive(Clone, Copy)]
pub(super) struct Experts<'a> {
    pub spec: &'a ExpertsSpec,
    pub weights: &'a ExpertWeights,
}

/// A network of phases 2 and 3: an expert and the rows that chose it, or the shared network and all rows.
#[derive(Clone, Copy)]
struct Network<'a> {
    mlp: &'a MlpWeights,
    activation: Activation,
    /// None for the shared network.
    used: Option<UsedExpert>,
    rows: usize,
}

impl Network<'_> {
    /// Its first panel of `linear`.
    fn first_panel(&self, linear: &Linear) -> usize {
        let expert = self.used.map_or(0, |used| used.expert as usize);
        expert * linear.matrix.segment_panels()
    }

    /// Where its activated rows begin among those of all experts, if they are quantized.
    fn first_tiled_row(&self) -> usize {
        self.used.map_or(0, UsedExpert::first_tiled_row)
    }

    /// Where its outputs begin; those of the shared network follow those of the experts.
    fn first_output(&self, uses: usize) -> usize {
        self.used.map_or(uses, |used| used.places().start)
    }

    /// Whether its down projection takes quantized rows.
    fn is_quantized(&self) -> bool {
        self.mlp.down.matrix.kind.is_quantized()
    }

    /// Panels of an item of phase 2: a group of the down projection's inputs, or one panel if it takes floats.
    fn item_panels(&self) -> usize {
        if self.is_quantized() {
            GROUP / PANEL_COLUMNS
        } else {
            1
        }
    }

    /// Items of phase 2.
    fn items(&self) -> usize {
        self.mlp.up.matrix.segment_panels() / self.item_panels()
    }

    /// What is read first for its panel `panel` of gate and up.
    fn first_read(&self, panel: usize) -> *const u8 {
        let linear = self.mlp.gate.as_ref().unwrap_or(&self.mlp.up);
        linear.matrix.panel(self.first_panel(linear) + panel)
    }

    /// Its panel `panel` of the down projection.
    fn down_panel(&self, panel: usize) -> *const u8 {
        let down = &self.mlp.down;
        down.matrix.panel(self.first_panel(down) + panel)
    }

    /// Multiply all its rows with panels `panels` of gate and up, into two matrices as wide as the panels. `next` is
    /// prefetched.
    ///
    /// # Safety
    /// `gemm` is of the network's rows; no other thread uses the matrices.
    unsafe fn multiply_gate_and_up(
        &self,
        gemm: &mut Gemm<'_>,
        panels: Range<usize>,
        (gate_out, up_out): (RowsView, RowsView),
        next: Option<*const u8>,
    ) {
        let up = &self.mlp.up;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(gate) = &self.mlp.gate {
                let first = self.first_panel(up) + panels.start;
                self.multiply(
                    gemm,
                    gate,
                    panels.clone(),
                    gate_out,
                    Some(up.matrix.panel(first)),
                );
            }
            self.multiply(gemm, up, panels, up_out, next);
        }
    }

    /// Multiply all its rows with some of its panels of `linear`.
    ///
    /// # Safety
    /// As [`Self::multiply_gate_and_up`].
    unsafe fn multiply(
        &self,
        gemm: &mut Gemm<'_>,
        linear: &Linear,
        panels: Range<usize>,
        out: RowsView,
        next: Option<*const u8>,
    ) {
        let first = self.first_panel(linear);
        let panels = first + panels.start..first + panels.end;
        let target = Target::replace(out);
        // SAFETY: the caller's promise.
        unsafe { Step::multiply(gemm, linear, panels, 0..self.rows, next, target) };
    }
}

/// A worker's own memory in phase 2.
struct Memory<'a> {
    gate: &'a Buffer<f32>,
    up: &'a Buffer<f32>,
    panel: &'a mut PanelScratch,
    gathered: &'a ActivationBuffers,
    activated: &'a Buffer<f32>,
    grouped: &'a ExpertRows,
}

/// The networks that rows use, in the order of their items.
#[derive(Clone, Copy)]
struct Networks<'a> {
    experts: Experts<'a>,
    used: &'a [UsedExpert],
    /// All rows.
    rows: usize,
}

impl<'a> Networks<'a> {
    fn expert(&self, used: UsedExpert) -> Network<'a> {
        Network {
            mlp: &self.experts.weights.experts,
            activation: self.experts.spec.activation,
            used: Some(used),
            rows: used.rows(),
        }
    }

    /// The shared network, if it is one of these: with norms of its own it is computed by itself.
    fn shared(&self) -> Option<Network<'a>> {
        if self.experts.weights.own_norms.is_some() {
            return None;
        }
        let spec = self.experts.spec.shared.as_ref()?;
        Some(Network {
            mlp: self.experts.weights.shared.as_ref()?,
            activation: spec.activation,
            used: None,
            rows: self.rows,
        })
    }

    fn all(self) -> impl Iterator<Item = Network<'a>> {
        let used = self.used.iter().map(move |&used| self.expert(used));
        used.chain(self.shared())
    }

    /// Items of phase 2.
    fn items(self) -> usize {
        self.all().map(|network| network.items()).sum()
    }

    /// The network of an item, and the items of that network.
    fn of_item(&self, item: usize) -> (Network<'a>, Range<usize>) {
        // Experts have equally many items.
        let each = self
            .used
            .first()
            .map_or(0, |&used| self.expert(used).items());
        if let Some(&used) = item.checked_div(each).and_then(|at| self.used.get(at)) {
            let first = item - item % each;
            return (self.expert(used), first..first + each);
        }
        let first = self.used.len() * each;
        let shared = self.shared().expect("an item of the shared network");
        (shared, first..first + shared.items())
    }
}

impl Step<'_> {
    /// The feed-forward of layer `index`, added to the residual stream.
    pub(super) fn use_experts<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
        experts: Experts<'_>,
    ) {
        let rows = self.rows_after_attention(index);
        let users = experts.weights.users();
        let source = self.hidden(layer.ffn_norm.as_ref());
        let counter = self.prepare_counter(index, ROUTER);
        let was_registered = worker.is_registered();
        let activations = self.prepare(worker, own, rows, source, &users, counter);
        self.multiply_routers(worker, own, index, rows, &activations, experts.weights);
        barrier_wait(worker, own, Phase::Router);
        if rows > REDUNDANT_ROWS {
            self.choose_together(worker, own, index, rows, experts);
            barrier_wait(worker, own, Phase::Router);
        } else if !was_registered {
            // It may have registered at the barrier; its own activations are then missing.
            self.prepare(worker, own, rows, source, &users, counter);
        }
        let grouped = self.group_rows(worker, own, rows, experts);
        if grouped {
            self.activate_experts(worker, own, index, &activations, rows, experts);
        }
        barrier_wait(worker, own, Phase::GateUp);
        let branched = self.is_branched(layer.ffn_post_norm.as_deref());
        if grouped || self.group_rows(worker, own, rows, experts) {
            let target = self.branch_target(branched);
            self.add_experts(worker, own, index, rows, experts, target);
        }
        barrier_wait(worker, own, Phase::Down);
        if branched {
            self.add_branch(worker, index, ADD_FFN, layer.ffn_post_norm.as_deref());
            barrier_wait(worker, own, Phase::Down);
        }
    }

    /// The router's logits of all rows.
    fn router_logits(&self) -> RowsView {
        let shared = &self.scratch.experts;
        RowsView::of(&shared.logits, shared.sizes.logit_stride())
    }

    /// The column of the shared network's logits.
    fn shared_logit(&self) -> usize {
        self.scratch.experts.sizes.logit_stride() - PANEL_COLUMNS
    }

    pub(super) fn multiply_routers<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        rows: usize,
        activations: &Activations,
        weights: &ExpertWeights,
    ) {
        let target = Target::replace(self.router_logits());
        let counter = self.counter(index, ROUTER);
        self.multiply_into(
            worker,
            own,
            rows,
            activations,
            &weights.router,
            target,
            counter,
        );
        if let Some(router) = &weights.shared_router {
            let column = self.shared_logit();
            let target = Target::replace(target.rows.columns(column, PANEL_COLUMNS));
            let counter = self.counter(index, SHARED_ROUTER);
            self.multiply_into(worker, own, rows, activations, router, target, counter);
        }
    }

    /// Choose the experts of row `row`; `logits` is memory for its logits.
    fn choose(
        &self,
        experts: Experts<'_>,
        row: usize,
        logits: &mut [f32],
        chosen: &mut [u32],
        weights: &mut [f32],
    ) {
        let router = Router {
            spec: experts.spec,
            correction: experts.weights.correction.as_deref(),
            expert_scale: experts.weights.expert_scale.as_deref(),
        };
        let logits = &mut logits[..experts.spec.count];
        // SAFETY: the logits are complete: they were written before a barrier.
        let from = unsafe { self.router_logits().columns(0, logits.len()).row(row) };
        logits.copy_from_slice(from);
        router.choose(logits, chosen, weights);
    }

    /// Choose the experts of many rows, which the workers divide.
    pub(super) fn choose_together<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        rows: usize,
        experts: Experts<'_>,
    ) {
        let (used, shared) = (experts.spec.used, &self.scratch.experts);
        for row in Parts::new(worker, self.counter(index, CHOOSE), rows, rows).flatten() {
            // SAFETY: only this worker uses the row's entries.
            let (chosen, weights) = unsafe {
                (
                    shared.chosen.slice_mut(row * used, used),
                    shared.weights.slice_mut(row * used, used),
                )
            };
            self.choose(experts, row, &mut own.experts.logits, chosen, weights);
        }
    }

    /// Group the rows by expert, and choose the experts before if they are few. Returns false, and does nothing, if this
    /// worker does not take part: the others may be a phase ahead of it.
    pub(super) fn group_rows(
        &self,
        worker: &Worker<'_>,
        own: &mut WorkerScratch,
        rows: usize,
        experts: Experts<'_>,
    ) -> bool {
        if !worker.is_registered() {
            return false;
        }
        let (used, count) = (experts.spec.used, experts.spec.count);
        let own = &mut own.experts;
        if rows > REDUNDANT_ROWS {
            // SAFETY: complete since the last barrier but one.
            let chosen = unsafe { self.scratch.experts.chosen.slice(0, rows * used) };
            own.rows.group(chosen, used, count);
            return true;
        }
        for row in 0..rows {
            let uses = row * used..(row + 1) * used;
            let (chosen, weights) = (&mut own.chosen[uses.clone()], &mut own.weights[uses]);
            self.choose(experts, row, &mut own.logits, chosen, weights);
        }
        own.rows.group(&own.chosen[..rows * used], used, count);
        true
    }

    /// Gate and up projections of all networks, and their activation.
    pub(super) fn activate_experts<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        activations: &Activations,
        rows: usize,
        experts: Experts<'_>,
    ) {
        let WorkerScratch {
            gate, up, panel, ..
        } = own;
        let own = &mut own.experts;
        let networks = Networks {
            experts,
            used: own.rows.used(),
            rows,
        };
        let mut memory = Memory {
            gate,
            up,
            panel,
            gathered: &own.gathered,
            activated: &own.activated,
            grouped: &own.rows,
        };
        let (total, counter) = (networks.items(), self.counter(index, GATE_UP));
        let parts = if rows > REDUNDANT_ROWS {
            own.costs.clear();
            let mut all = 0;
            for network in networks.all() {
                own.costs.extend((0..network.items()).map(|_| {
                    all += FREE_ROWS.max(network.rows);
                    all
                }));
            }
            Parts::of_cost(worker, counter, &own.costs)
        } else {
            Parts::new(worker, counter, total, rows)
        };
        for part in parts {
            let mut first = part.start;
            while first < part.end {
                let (network, items) = networks.of_item(first);
                let end = part.end.min(items.end);
                // Whoever computes the item after these, its first panel is prefetched.
                let next = (end < total).then(|| {
                    let (network, items) = networks.of_item(end);
                    network.first_read((end - items.start) * network.item_panels())
                });
                let these = first - items.start..end - items.start;
                self.activate_items(&mut memory, &network, these, next, activations, rows);
                first = end;
            }
        }
    }

    /// Compute some items of a network in phase 2: multiply its rows with panels of gate and up, activate and quantize them.
    fn activate_items(
        &self,
        memory: &mut Memory<'_>,
        network: &Network<'_>,
        items: Range<usize>,
        next: Option<*const u8>,
        activations: &Activations,
        all_rows: usize,
    ) {
        let (mlp, rows, level) = (network.mlp, network.rows, self.model.level);
        let x = match network.used {
            Some(used) if rows < all_rows => {
                let places = memory.grouped.rows(used.places());
                // SAFETY: the activations hold all rows; the buffers are this worker's own, for as many.
                unsafe { gather(activations, places, mlp.up.matrix.inputs, memory.gathered) }
            }
            _ => *activations,
        };
        let each = network.item_panels();
        let fused = network.is_quantized() && rows > REDUNDANT_ROWS;
        let at_once = if fused { each } else { 1 };
        let columns = at_once * PANEL_COLUMNS;
        let (gate, up) = (
            RowsView::of(memory.gate, columns),
            RowsView::of(memory.up, columns),
        );
        let (groups, form) = (
            mlp.down.matrix.inputs / GROUP,
            quant_form(&[&mlp.down], false),
        );
        // Items whose activated floats fit this worker's buffer, if they are quantized afterwards.
        let width = each * PANEL_COLUMNS;
        let several = (memory.activated.len() / (rows * width)).max(1);
        // SAFETY: the level was checked at load; so many rows were prepared, for these matrices.
        let mut gemm = unsafe { Gemm::new(level, &x, rows, memory.panel) };
        for first in items.clone().step_by(several) {
            let some = first..items.end.min(first + several);
            let panels = some.start * each..some.end * each;
            let out = if network.is_quantized() {
                RowsView::of(memory.activated, some.len() * width)
            } else {
                self.activated_rows(network)
                    .columns(panels.start * PANEL_COLUMNS, panels.len() * PANEL_COLUMNS)
            };
            for panel in panels.clone().step_by(at_once) {
                let these = panel..panel + at_once;
                let following = if these.end < items.end * each {
                    Some(network.first_read(these.end))
                } else {
                    next
                };
                // SAFETY: only this worker uses `gate`, `up`, its own buffer, and these columns of the network's activated
                // rows. The level was checked at load.
                unsafe {
                    network.multiply_gate_and_up(&mut gemm, these, (gate, up), following);
                    let kind = network.activation;
                    let (x, by) = match &mlp.gate {
                        Some(_) => (gate.ptr(0), up.ptr(0).cast_const()),
                        None => (up.ptr(0), std::ptr::null()),
                    };
                    if fused {
                        let to = self.group_of(
                            self.activated_quant(network),
                            panel / each,
                            network.first_tiled_row(),
                            groups,
                        );
                        quantize_gated(level, kind, x, by, rows, form, to);
                    } else {
                        let out = out.columns((panel - panels.start) * PANEL_COLUMNS, columns);
                        let (to, stride) = (out.ptr(0), out.stride());
                        activate_panel(level, kind, x, by, to, stride, rows);
                    }
                }
            }
            if network.is_quantized() && !fused {
                // SAFETY: only this worker uses these groups of the network's rows.
                unsafe { self.quantize_items(network, some, out) };
            }
        }
    }

    /// Quantize activated columns of a network's rows: those of items `items`, which are at `from`.
    ///
    /// # Safety
    /// This worker wrote them, and no other worker uses these groups.
    unsafe fn quantize_items(&self, network: &Network<'_>, items: Range<usize>, from: RowsView) {
        let down = &network.mlp.down;
        let (form, all) = (quant_form(&[down], false), down.matrix.inputs / GROUP);
        let (first, to) = (network.first_tiled_row(), self.activated_quant(network));
        for tile in (0..network.rows).step_by(TILE_ROWS) {
            // SAFETY: the caller's promise.
            unsafe {
                let x = |row: usize| from.row(row - first);
                let rows = first + tile..first + network.rows.min(tile + TILE_ROWS);
                self.quantize_rows(to, rows, x, None, form, (items.clone(), all));
            }
        }
    }

    /// The activated rows of a network, if its down projection takes floats.
    fn activated_rows(&self, network: &Network<'_>) -> RowsView {
        match network.used {
            Some(used) => {
                let experts = &self.scratch.experts;
                RowsView::of(&experts.gate, experts.sizes.gate_stride())
                    .rows_from(used.places().start)
            }
            None => self.gate_rows(),
        }
    }

    /// Where the activated rows of a network are if they are quantized.
    fn activated_quant(&self, network: &Network<'_>) -> &QuantBuffers {
        match network.used {
            Some(_) => &self.scratch.experts.gated,
            None => &self.scratch.gated,
        }
    }

    /// The activated rows of a network, as its down projection takes them.
    fn activated(&self, network: &Network<'_>) -> Activations {
        let down = &network.mlp.down;
        let form = quant_form(&[down], false);
        if network.is_quantized() {
            let rows = self.quant_rows(self.activated_quant(network), down.matrix.inputs, form);
            return Activations {
                // SAFETY: the network's rows begin at a row tile inside the buffers.
                quant: Some(unsafe { rows.skip(network.first_tiled_row()) }),
                scale_mode: form.scale_mode,
                float: std::ptr::null(),
                float_stride: 0,
            };
        }
        let rows = self.activated_rows(network);
        Activations {
            quant: None,
            scale_mode: form.scale_mode,
            float: rows.ptr(0),
            float_stride: rows.stride(),
        }
    }

    /// Down projections of all networks, and their weighted sums.
    #[allow(clippy::too_many_arguments, reason = "one call of a hot path")]
    pub(super) fn add_experts<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        rows: usize,
        experts: Experts<'_>,
        target: Target,
    ) {
        let (used, panel) = (experts.spec.used, &mut own.panel);
        let own = &own.experts;
        let networks = Networks {
            experts,
            used: own.rows.used(),
            rows,
        };
        let weights = if rows > REDUNDANT_ROWS {
            // SAFETY: complete since an earlier barrier.
            unsafe { self.scratch.experts.weights.slice(0, rows * used) }
        } else {
            &own.weights[..rows * used]
        };
        let outputs = rows * used + networks.shared().map_or(0, |shared| shared.rows);
        let most = own.outputs.len() / (outputs * PANEL_COLUMNS);
        let panels = experts.weights.experts.down.matrix.segment_panels();
        let each = if rows > REDUNDANT_ROWS {
            let many = panels.div_ceil(ITEMS_EACH * worker.size());
            many.next_multiple_of(2).min(most)
        } else {
            1
        };
        let counter = self.counter(index, DOWN);
        for part in Parts::new(worker, counter, panels.div_ceil(each), rows) {
            let part = part.start * each..panels.min(part.end * each);
            for first in part.clone().step_by(most) {
                let some = first..part.end.min(first + most);
                let width = some.len() * PANEL_COLUMNS;
                let view = RowsView::of(&own.outputs, width);
                let mut all = networks.all().peekable();
                while let Some(network) = all.next() {
                    let next = all.peek().map(|next| next.down_panel(some.start));
                    // SAFETY: only this worker uses its own buffers.
                    unsafe {
                        let x = self.activated(&network);
                        let mut gemm = Gemm::new(self.model.level, &x, network.rows, panel);
                        let to = view.rows_from(network.first_output(rows * used));
                        network.multiply(&mut gemm, &network.mlp.down, some.clone(), to, next);
                    }
                }
                for row in 0..rows {
                    let columns = target.rows.columns(some.start * PANEL_COLUMNS, width);
                    // SAFETY: only this worker uses these columns.
                    let to = unsafe { columns.row_mut(row) };
                    if !target.accumulate {
                        to.fill(0.0);
                    }
                    let weights = &weights[row * used..(row + 1) * used];
                    // SAFETY: the outputs were just written.
                    unsafe { self.add_outputs(networks, &own.rows, (row, weights), view, to) };
                }
            }
        }
    }

    /// Add the outputs of a row's experts, with these weights, and of the shared network to `to`.
    ///
    /// # Safety
    /// `outputs` are those of all networks, as wide as `to`, and no other thread writes them.
    unsafe fn add_outputs(
        &self,
        networks: Networks<'_>,
        grouped: &ExpertRows,
        (row, weights): (usize, &[f32]),
        outputs: RowsView,
        to: &mut [f32],
    ) {
        let used = weights.len();
        let mut terms = [WeightedRow::default(); MAX_USED_EXPERTS + 1];
        let places = grouped.places_of_row(row, used).iter().zip(weights);
        for (term, (&row, &weight)) in terms.iter_mut().zip(places) {
            *term = WeightedRow { row, weight };
        }
        let mut count = used;
        if let Some(shared) = networks.shared() {
            terms[count] = WeightedRow {
                row: (shared.first_output(networks.rows * used) + row) as u32,
                weight: self.shared_weight(networks.experts.weights, row),
            };
            count += 1;
        }
        let (level, terms) = (self.model.level, &terms[..count]);
        // SAFETY: the caller's promise; the level was checked at load.
        unsafe { add_weighted_sum(level, outputs.ptr(0), outputs.stride(), terms, to) };
    }

    /// The weight of the shared network's output for a row.
    fn shared_weight(&self, weights: &ExpertWeights, row: usize) -> f32 {
        if weights.shared_router.is_none() {
            return 1.0;
        }
        // SAFETY: written before an earlier barrier.
        let logit = unsafe {
            self.router_logits()
                .columns(self.shared_logit(), 1)
                .row(row)[0]
        };
        sigmoid(logit)
    }
}
