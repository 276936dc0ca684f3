//! The feed-forward of a layer that cuts its gates: those of a token are cut where they are not some standard deviations
//! above their mean, so that all must be known before one is activated.

use super::activations::Source;
use super::rows_view::RowsView;
use super::{ADD_FFN, CUT, DOWN, GATE_UP, Step, Target, UP, barrier_wait};
use crate::activation::activate_panel;
use crate::pack::PANEL_COLUMNS;
use crate::phase_clock::Phase;
use crate::pool::Worker;
use crate::scratch::WorkerScratch;
use crate::spec::MlpSpec;
use crate::weights::{LayerWeights, MlpWeights};
use crate::work_share::Parts;

impl Step<'_> {
    /// The feed-forward of layer `index`, added to the residual stream.
    pub(super) fn cut_feed_forward<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
        (spec, mlp, cutoff): (&MlpSpec, &MlpWeights, f32),
    ) {
        let rows = self.rows_after_attention(index);
        let (users, source) = (mlp.inputs(), self.hidden(layer.ffn_norm.as_ref()));
        let counter = self.prepare_counter(index, GATE_UP);
        let activations = self.prepare(worker, own, rows, source, &users, counter);
        let [gate, up] = users;
        let target = Target::replace(self.gate_rows());
        let counter = self.counter(index, GATE_UP);
        self.multiply_into(worker, own, rows, &activations, gate, target, counter);
        let target = Target::replace(self.up_rows());
        let counter = self.counter(index, UP);
        self.multiply_into(worker, own, rows, &activations, up, target, counter);
        barrier_wait(worker, own, Phase::GateUp);
        self.cut_gates(worker, index, rows, (spec, cutoff));
        barrier_wait(worker, own, Phase::GateUp);
        let source = Source {
            rows: self.gate_rows(),
            index: None,
            norm: None,
            keep_outliers: false,
        };
        let counter = self.prepare_counter(index, DOWN);
        let activations = self.prepare(worker, own, rows, source, &[&mlp.down], counter);
        let branched = self.is_branched(layer.ffn_post_norm.as_deref());
        let (target, counter) = (self.branch_target(branched), self.counter(index, DOWN));
        self.multiply_into(worker, own, rows, &activations, &mlp.down, target, counter);
        barrier_wait(worker, own, Phase::Down);
        if branched {
            self.add_branch(worker, index, ADD_FFN, layer.ffn_post_norm.as_deref());
            barrier_wait(worker, own, Phase::Down);
        }
    }

    /// Rows of the other half of the feed-forward.
    fn up_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.up, self.scratch.strides.gate)
    }

    /// `gate = act(max(0, gate - mean - cutoff * deviation)) * up`, row by row.
    fn cut_gates<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        index: usize,
        rows: usize,
        (spec, cutoff): (&MlpSpec, f32),
    ) {
        let (gates, ups, width) = (self.gate_rows(), self.up_rows(), spec.intermediate_size);
        let (level, kind, counter) = (self.model.level, spec.activation, self.counter(index, CUT));
        for row in Parts::new(worker, counter, rows, rows).flatten() {
            // SAFETY: both were written before a barrier, and only this worker uses these rows, which are padded to whole
            // panels. The level was checked at load.
            unsafe {
                cut(gates.columns(0, width).row_mut(row), cutoff);
                for first in (0..width).step_by(PANEL_COLUMNS) {
                    let gate = gates.columns(first, PANEL_COLUMNS).ptr(row);
                    let up = ups.columns(first, PANEL_COLUMNS).ptr(row);
                    activate_panel(level, kind, gate, up, gate, PANEL_COLUMNS, 1);
                }
            }
        }
    }
}

/// Subtract what is `cutoff` standard deviations above the mean, and keep what is above zero.
fn cut(gates: &mut [f32], cutoff: f32) {
    let count = gates.len() as f64;
    let mean = gates.iter().map(|&gate| f64::from(gate)).sum::<f64>() / count;
    let square = |&gate: &f32| (f64::from(gate) - mean).powi(2);
    let deviation = (gates.iter().map(square).sum::<f64>() / count).sqrt();
    let least = (mean + deviation * f64::from(cutoff)) as f32;
    for gate in gates {
        // A NaN stays one.
        *gate = if *gate < least { 0.0 } else { *gate - least };
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn gates_below_the_bound_are_cut() {
        // Mean 2, deviation 1.
        let mut gates = [1.0, 3.0, 1.0, 3.0];
        cut(&mut gates, 0.25);
        assert_eq!(gates, [0.0, 0.75, 0.0, 0.75]);
        cut(&mut gates, -10.0);
        assert!(gates.iter().all(|&gate| gate > 0.0));
    }

    #[test]
    fn gates_that_are_no_numbers_stay_so() {
        let mut gates = [1.0, f32::NAN, 3.0];
        cut(&mut gates, 1.0);
        assert!(gates.iter().all(|gate| gate.is_nan()));
    }
}
