//! The feed-forward of a layer: gate and up projections with the activation, then the down projection.

use super::activations::{Gating, Source, quant_form};
use super::rows_view::RowsView;
use super::{ADD_FFN, DOWN, GATE_UP, Step, barrier_wait, panel_columns};
use crate::activation::activate_panel;
use crate::activation_quant::quantize_gated;
use crate::gemm::{Gemm, Output};
use crate::pack::PANEL_COLUMNS;
use crate::pack::layout::GROUP;
use crate::phase_clock::Phase;
use crate::pool::Worker;
use crate::scratch::WorkerScratch;
use crate::spec::MlpSpec;
use crate::weights::{LayerWeights, Linear, MlpWeights, Norm};
use crate::work_share::{Parts, SlicedItems};

impl Step<'_> {
    /// The feed-forward of layer `index`, added to the residual stream.
    pub(super) fn feed_forward<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
        (spec, mlp): (&MlpSpec, &MlpWeights),
    ) {
        let norm = layer.ffn_norm.as_ref();
        self.gate_and_up(worker, own, (index, GATE_UP), norm, (spec, mlp));
        barrier_wait(worker, own, Phase::GateUp);
        let branched = self.is_branched(layer.ffn_post_norm.as_deref());
        self.project_down(worker, own, (index, DOWN), mlp, branched);
        barrier_wait(worker, own, Phase::Down);
        if branched {
            let norm = layer.ffn_post_norm.as_deref();
            self.add_branch(worker, index, ADD_FFN, norm);
            barrier_wait(worker, own, Phase::Down);
        }
    }

    /// Down projection: added to the residual stream, or written as a branch.
    pub(super) fn project_down<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        (index, phase): (usize, usize),
        mlp: &MlpWeights,
        branched: bool,
    ) {
        let rows = self.rows_after_attention(index);
        let activations = self.gated(&mlp.down).unwrap_or_else(|| {
            let source = Source {
                rows: self.gate_rows(),
                index: None,
                norm: None,
                keep_outliers: false,
            };
            let counter = self.prepare_counter(index, phase);
            self.prepare(worker, own, rows, source, &[&mlp.down], counter)
        });
        let (target, counter) = (self.branch_target(branched), self.counter(index, phase));
        self.multiply_into(worker, own, rows, &activations, &mlp.down, target, counter);
    }

    /// Gate and up projections, and the activation while both are in the CPU cache. The result is quantized at once
    /// if the down projection takes quantized rows; a group of its inputs is two panels.
    pub(super) fn gate_and_up<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        (index, phase): (usize, usize),
        norm: Option<&Norm>,
        (spec, mlp): (&MlpSpec, &MlpWeights),
    ) {
        let rows = self.rows_after_attention(index);
        // Without a gate the activation is of the only projection.
        let users = mlp.inputs();
        let first_linear = users[0];
        let activations = self.prepare(
            worker,
            own,
            rows,
            self.hidden(norm),
            &users,
            self.prepare_counter(index, phase),
        );
        // SAFETY: the level was checked at load; so many rows were prepared, for these users.
        let mut gemm = unsafe { Gemm::new(self.model.level, &activations, rows, &mut own.panel) };
        let level = self.model.level;
        let gating = Gating::of(&mlp.down, rows);
        let panels = mlp.up.matrix.panels();
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
        let groups = mlp.down.matrix.inputs / GROUP;
        let (kind, form) = (spec.activation, quant_form(&[&mlp.down], false));
        let counter = self.counter(index, phase);
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
                    let (next_up, next) =
                        (mlp.up.matrix.panel(first), first_linear.matrix.panel(next));
                    let pairs = [
                        (first_linear, next_up, output(gate, first_linear)),
                        (&mlp.up, next, output(up, &mlp.up)),
                    ];
                    // The first alone if there is no gate.
                    let pairs = &pairs[..if mlp.gate.is_some() { 2 } else { 1 }];
                    let (gate, up) = (gate.ptr(slice.start), up.ptr(slice.start));
                    // SAFETY: only this worker uses these columns of the slice's activated rows, and `gate` and `up`.
                    unsafe {
                        for &(linear, next, out) in pairs {
                            let (panels, rows) = (these.clone(), slice.clone());
                            gemm.panels_of_rows(&linear.matrix, panels, rows, next, out);
                        }
                        let up = if mlp.gate.is_some() {
                            up
                        } else {
                            std::ptr::null_mut()
                        };
                        if gating == Gating::Groups {
                            let to = self.gated_group(unit, slice.start, groups);
                            quantize_gated(level, kind, gate, up, slice.len(), form, to);
                        } else {
                            let out = panel_columns(self.gate_rows(), &these);
                            let (out, stride) = (out.ptr(slice.start), out.stride());
                            activate_panel(level, kind, gate, up, out, stride, slice.len());
                        }
                    }
                }
            }
            if gating == Gating::Parts {
                // SAFETY: as above; so few rows are not cut into slices.
                unsafe { self.quantize_gated_columns(part, rows, &mlp.down) };
            }
        }
    }
}
