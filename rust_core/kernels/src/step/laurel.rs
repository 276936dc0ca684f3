//! What layers add beside their mixers (Laurel): with `x` the normalized input of the mixer, `x + norm(right(left(x)))` is
//! added to the residual stream with the mixer's output, and the sum divided by `sqrt(2)`.

use std::f32::consts::FRAC_1_SQRT_2;

use super::activations::Source;
use super::rows_view::RowsView;
use super::{ADD_LAUREL, LAUREL_LEFT, LAUREL_RIGHT, NORM_LAUREL, Step, Target, barrier_wait};
use crate::norm::{rms_norm_in_place, rms_scale};
use crate::phase_clock::Phase;
use crate::pool::Worker;
use crate::scratch::WorkerScratch;
use crate::weights::{LaurelWeights, Norm};
use crate::work_share::Parts;

impl Step<'_> {
    /// Rows of what is added.
    fn laurel_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.laurel, self.scratch.strides.hidden)
    }

    /// Compute what is added to the output of the mixer of layer `index`, whose input has the norm `norm`.
    pub(super) fn write_laurel<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        norm: Option<&Norm>,
        weights: &LaurelWeights,
    ) {
        let (rows, spec, level) = (self.tokens(), &self.model.spec, self.model.level);
        let (left, right) = (&weights.left, &weights.right);
        let counter = self.prepare_counter(index, LAUREL_LEFT);
        let activations = self.prepare(worker, own, rows, self.hidden(norm), &[left], counter);
        let counter = self.counter(index, LAUREL_LEFT);
        // The feed-forward's rows are not used yet.
        let target = Target::replace(self.gate_rows());
        self.multiply_into(worker, own, rows, &activations, left, target, counter);
        barrier_wait(worker, own, Phase::Qkv);
        let source = Source {
            rows: self.gate_rows(),
            index: None,
            norm: None,
            keep_outliers: false,
        };
        let counter = self.prepare_counter(index, LAUREL_RIGHT);
        let activations = self.prepare(worker, own, rows, source, &[right], counter);
        let counter = self.counter(index, LAUREL_RIGHT);
        let target = Target::replace(self.laurel_rows());
        self.multiply_into(worker, own, rows, &activations, right, target, counter);
        barrier_wait(worker, own, Phase::Qkv);
        let (hidden, laurel) = (
            self.hidden_rows().columns(0, spec.hidden_size),
            self.laurel_rows().columns(0, spec.hidden_size),
        );
        let counter = self.counter(index, NORM_LAUREL);
        for row in Parts::new(worker, counter, rows, rows).flatten() {
            // SAFETY: written before a barrier; only this worker writes this row, and the residual stream is only read. The
            // level was checked at load.
            unsafe {
                let (x, out) = (hidden.row(row), laurel.row_mut(row));
                rms_norm_in_place(level, out, &weights.norm, spec.norm_eps);
                match norm {
                    Some(norm) => {
                        let scale = rms_scale(level, x, spec.norm_eps);
                        for ((out, x), weight) in out.iter_mut().zip(x).zip(&norm.weight) {
                            *out += x * scale * weight;
                        }
                    }
                    None => out.iter_mut().zip(x).for_each(|(out, x)| *out += x),
                }
            }
        }
        // Before the mixer changes the residual stream.
        barrier_wait(worker, own, Phase::Qkv);
    }

    /// Add it.
    pub(super) fn add_laurel<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &WorkerScratch,
        index: usize,
    ) {
        let (rows, width) = (self.tokens(), self.model.spec.hidden_size);
        let (hidden, laurel) = (
            self.hidden_rows().columns(0, width),
            self.laurel_rows().columns(0, width),
        );
        let counter = self.counter(index, ADD_LAUREL);
        for row in Parts::new(worker, counter, rows, rows).flatten() {
            // SAFETY: only this worker uses these rows.
            let (sum, added) = unsafe { (hidden.row_mut(row), laurel.row(row)) };
            for (sum, added) in sum.iter_mut().zip(added) {
                *sum = (*sum + added) * FRAC_1_SQRT_2;
            }
        }
        barrier_wait(worker, own, Phase::Output);
    }
}
