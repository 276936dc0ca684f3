//! What a mixer or feed-forward adds to the residual stream: at once, or as a branch that is normalized or scaled first.

use super::rows_view::RowsView;
use super::{SCALE, Step, Target, barrier_wait};
use crate::norm::rms_norm_in_place;
use crate::phase_clock::Phase;
use crate::pool::Worker;
use crate::scratch::WorkerScratch;
use crate::work_share::Parts;

impl Step<'_> {
    /// Whether an output is written as a branch before it is added: it is normalized, or the model scales what is added.
    pub(super) fn is_branched(&self, post_norm: Option<&[f32]>) -> bool {
        post_norm.is_some() || self.model.spec.residual_multiplier != 1.0
    }

    /// Rows of the branch.
    pub(super) fn branch_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.branch, self.scratch.strides.hidden)
    }

    /// Where an output projection writes.
    pub(super) fn branch_target(&self, branched: bool) -> Target {
        Target {
            rows: if branched {
                self.branch_rows()
            } else {
                self.hidden_rows()
            },
            accumulate: !branched,
        }
    }

    /// Add the branch, normalized with `norm` if there is one and times the model's multiplier, to the residual stream.
    pub(super) fn add_branch<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        index: usize,
        phase: usize,
        norm: Option<&[f32]>,
    ) {
        let (spec, level) = (&self.model.spec, self.model.level);
        let (rows, width) = (self.rows_after_attention(index), spec.hidden_size);
        let (branch, hidden) = (self.branch_rows(), self.hidden_rows());
        let counter = self.counter(index, phase);
        for row in Parts::new(worker, counter, rows, rows).flatten() {
            // SAFETY: the branch was written before a barrier; only this worker uses these rows. The level was checked at
            // load.
            unsafe {
                let branch = branch.columns(0, width).row_mut(row);
                let hidden = hidden.columns(0, width).row_mut(row);
                if let Some(norm) = norm {
                    rms_norm_in_place(level, branch, norm, spec.norm_eps);
                }
                for (sum, value) in hidden.iter_mut().zip(branch) {
                    *sum += spec.residual_multiplier * *value;
                }
            }
        }
    }

    /// Rows of the output of experts beside a network, whose own output is the branch.
    pub(super) fn second_branch_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.second_branch, self.scratch.strides.hidden)
    }

    /// Add the second branch to the first, each normalized with a norm of its own.
    pub(super) fn join_branches<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        index: usize,
        phase: usize,
        [norm, second_norm]: [&[f32]; 2],
    ) {
        let (spec, level) = (&self.model.spec, self.model.level);
        let (rows, width) = (self.rows_after_attention(index), spec.hidden_size);
        let (branch, second) = (self.branch_rows(), self.second_branch_rows());
        let counter = self.counter(index, phase);
        for row in Parts::new(worker, counter, rows, rows).flatten() {
            // SAFETY: both were written before a barrier; only this worker uses these rows. The level was checked at load.
            unsafe {
                let branch = branch.columns(0, width).row_mut(row);
                let second = second.columns(0, width).row_mut(row);
                rms_norm_in_place(level, branch, norm, spec.norm_eps);
                rms_norm_in_place(level, second, second_norm, spec.norm_eps);
                for (sum, value) in branch.iter_mut().zip(second) {
                    *sum += *value;
                }
            }
        }
    }

    /// Multiply the residual stream with a factor.
    pub(super) fn scale_output<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &WorkerScratch,
        index: usize,
        factor: f32,
    ) {
        let (rows, width) = (
            self.rows_after_attention(index),
            self.model.spec.hidden_size,
        );
        let hidden = self.hidden_rows().columns(0, width);
        let counter = self.counter(index, SCALE);
        for row in Parts::new(worker, counter, rows, rows).flatten() {
            // SAFETY: only this worker uses these rows.
            let row = unsafe { hidden.row_mut(row) };
            row.iter_mut().for_each(|value| *value *= factor);
        }
        barrier_wait(worker, own, Phase::Down);
    }
}
