//! Several residual streams, of which layers compute one (AltUp).
//!
//! Before a layer each stream is predicted from all of them, and the active one is the layer's residual stream, which is
//! [`Step::hidden_rows`]. Its result corrects all. Factors follow from a router of a few outputs; a row is one worker's. See
//! `Streams` in `engine/models/spec.py`.

use super::activations::Source;
use super::rows_view::RowsView;
use super::{
    ADD_MERGED, CORRECT, MERGE, PREDICT, SCALE_STREAMS, SPREAD, Step, Target, barrier_wait,
};
use crate::norm::{rms_norm_in_place, rms_scale, sum_of_squares};
use crate::pack::PANEL_COLUMNS;
use crate::phase_clock::Phase;
use crate::pool::Worker;
use crate::scratch::WorkerScratch;
use crate::spec::{MAX_STREAMS, StreamsSpec};
use crate::weights::{StreamProjections, StreamWeights};
use crate::work_share::Parts;

/// The smallest mean square of a stream that is scaled.
const LEAST_SQUARE: f32 = 1e-5;

impl Step<'_> {
    fn streams_spec(&self) -> StreamsSpec {
        self.model.spec.streams.expect("a model with streams")
    }

    /// Floats from one stream of a row to the next.
    fn stream_stride(&self) -> usize {
        let hidden = self.model.spec.hidden_size;
        hidden.next_multiple_of(PANEL_COLUMNS)
    }

    /// Rows of all streams, one stream after another.
    fn stream_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.streams, self.scratch.strides.streams)
    }

    /// Rows of one stream.
    fn rows_of_stream(&self, stream: usize) -> RowsView {
        let first = stream * self.stream_stride();
        self.stream_rows()
            .columns(first, self.model.spec.hidden_size)
    }

    /// The streams of the embedded tokens.
    pub(super) fn spread_streams<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        projections: &StreamProjections,
    ) {
        let (last, rows, stride) = (self.layers(), self.tokens(), self.stream_stride());
        let (linear, count) = (&projections.projection, self.streams_spec().count);
        let counter = self.prepare_counter(last, SPREAD);
        let activations = self.prepare(worker, own, rows, self.hidden(None), &[linear], counter);
        let others = self.stream_rows().columns(stride, (count - 1) * stride);
        let (target, counter) = (Target::replace(others), self.counter(last, SPREAD));
        self.multiply_into(worker, own, rows, &activations, linear, target, counter);
        barrier_wait(worker, own, Phase::Embed);
        let hidden = self.hidden_rows().columns(0, self.model.spec.hidden_size);
        let counter = self.counter(last, SCALE_STREAMS);
        for row in Parts::new(worker, counter, rows, rows).flatten() {
            // SAFETY: written before a barrier; only this worker uses these rows.
            unsafe {
                let first = self.rows_of_stream(0).row_mut(row);
                first.copy_from_slice(hidden.row(row));
                for stream in 1..count {
                    let other = self.rows_of_stream(stream).row_mut(row);
                    let factor = self.magnitude_factor(other, first);
                    other.iter_mut().for_each(|value| *value *= factor);
                }
            }
        }
        barrier_wait(worker, own, Phase::Embed);
    }

    /// The factor with which `row` has the root mean square of `other`.
    fn magnitude_factor(&self, row: &[f32], other: &[f32]) -> f32 {
        // SAFETY: the level was checked at load.
        let square =
            |row: &[f32]| unsafe { sum_of_squares(self.model.level, row) / row.len() as f32 };
        (square(other) / square(row).max(LEAST_SQUARE)).sqrt()
    }

    /// The outputs of a layer's router for a row.
    fn modalities(&self, weights: &StreamWeights, row: &[f32]) -> [f32; MAX_STREAMS] {
        // SAFETY: the level was checked at load.
        let scale = unsafe { rms_scale(self.model.level, row, self.model.spec.norm_eps) };
        let mut outputs = [0.0; MAX_STREAMS];
        let routers = weights.router.chunks_exact(row.len());
        for (output, router) in outputs.iter_mut().zip(routers) {
            *output = (scale * dot(row, router)).tanh();
        }
        outputs
    }

    /// Predict all streams of layer `index`, and make the active one the residual stream.
    pub(super) fn predict_streams<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &WorkerScratch,
        index: usize,
        weights: &StreamWeights,
    ) {
        let (rows, StreamsSpec { count, active }) = (self.tokens(), self.streams_spec());
        let hidden = self.hidden_rows().columns(0, self.model.spec.hidden_size);
        let counter = self.counter(index, PREDICT);
        for row in Parts::new(worker, counter, rows, rows).flatten() {
            // SAFETY: only this worker uses these rows.
            unsafe {
                let modalities = self.modalities(weights, self.rows_of_stream(active).row(row));
                let factors = |pair: usize| dot_few(&weights.predict, pair, &modalities, count);
                let streams = self.stream_rows().columns(0, count * self.stream_stride());
                predict(streams.row_mut(row), count, factors);
                let predicted = self.rows_of_stream(active).row(row);
                hidden.row_mut(row).copy_from_slice(predicted);
            }
        }
        barrier_wait(worker, own, Phase::Qkv);
    }

    /// Correct all streams by the result of layer `index`, and make the active one, scaled, the residual stream.
    pub(super) fn correct_streams<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &WorkerScratch,
        index: usize,
        weights: &StreamWeights,
    ) {
        let (rows, StreamsSpec { count, active }) = (self.tokens(), self.streams_spec());
        let hidden = self.hidden_rows().columns(0, self.model.spec.hidden_size);
        let counter = self.counter(index, CORRECT);
        for row in Parts::new(worker, counter, rows, rows).flatten() {
            // SAFETY: only this worker uses these rows.
            unsafe {
                let result = hidden.row_mut(row);
                let modalities = self.modalities(weights, result);
                let predicted = self.rows_of_stream(active).row(row);
                for (result, predicted) in result.iter_mut().zip(predicted) {
                    *result -= predicted;
                }
                for stream in 0..count {
                    let factor = 1.0 + dot_few(&weights.correct, stream, &modalities, count);
                    let values = self.rows_of_stream(stream).row_mut(row);
                    for (value, innovation) in values.iter_mut().zip(&*result) {
                        *value += factor * innovation;
                    }
                }
                result.copy_from_slice(self.rows_of_stream(active).row(row));
                if let Some(scale) = &weights.scale {
                    for (value, scale) in result.iter_mut().zip(scale) {
                        *value *= scale;
                    }
                }
            }
        }
        barrier_wait(worker, own, Phase::Down);
    }

    /// Add the branch, normalized with `norm`, to all streams but the first.
    pub(super) fn add_branch_to_streams<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        index: usize,
        phase: usize,
        norm: &[f32],
    ) {
        let (rows, count, spec) = (self.tokens(), self.streams_spec().count, &self.model.spec);
        let branch = self.branch_rows().columns(0, spec.hidden_size);
        let counter = self.counter(index, phase);
        for row in Parts::new(worker, counter, rows, rows).flatten() {
            // SAFETY: the branch was written before a barrier; only this worker uses these rows. The level was checked at
            // load.
            unsafe {
                let branch = branch.row_mut(row);
                rms_norm_in_place(self.model.level, branch, norm, spec.norm_eps);
                for stream in 1..count {
                    let values = self.rows_of_stream(stream).row_mut(row);
                    for (value, added) in values.iter_mut().zip(&*branch) {
                        *value += added;
                    }
                }
            }
        }
    }

    /// Make the mean of the streams, all but the first projected, the residual stream.
    pub(super) fn merge_streams<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        projections: &StreamProjections,
    ) {
        let (last, rows, count) = (self.layers(), self.tokens(), self.streams_spec().count);
        let width = self.model.spec.hidden_size;
        let (hidden, branch) = (
            self.hidden_rows().columns(0, width),
            self.branch_rows().columns(0, width),
        );
        for (stream, linear) in (1..).zip(&projections.merge) {
            let source = Source {
                rows: self.rows_of_stream(stream),
                index: None,
                norm: None,
                keep_outliers: true,
            };
            let counter = self.prepare_counter(last, MERGE + stream - 1);
            let activations = self.prepare(worker, own, rows, source, &[linear], counter);
            let counter = self.counter(last, MERGE + stream - 1);
            let target = self.branch_target(true);
            self.multiply_into(worker, own, rows, &activations, linear, target, counter);
            barrier_wait(worker, own, Phase::LmHead);
            let counter = self.counter(last, ADD_MERGED + stream - 1);
            for row in Parts::new(worker, counter, rows, rows).flatten() {
                // SAFETY: written before a barrier; only this worker uses these rows.
                unsafe {
                    let (sum, first) = (hidden.row_mut(row), self.rows_of_stream(0).row(row));
                    if stream == 1 {
                        sum.copy_from_slice(first);
                    }
                    let merged = branch.row(row);
                    let factor = self.magnitude_factor(merged, first);
                    for (sum, value) in sum.iter_mut().zip(merged) {
                        *sum += factor * value;
                    }
                    if stream + 1 == count {
                        sum.iter_mut().for_each(|value| *value /= count as f32);
                    }
                }
            }
            barrier_wait(worker, own, Phase::LmHead);
        }
    }
}

/// The sum of products of two rows.
fn dot(one: &[f32], other: &[f32]) -> f32 {
    let (one, one_rest) = one.as_chunks::<PANEL_COLUMNS>();
    let (other, other_rest) = other.as_chunks::<PANEL_COLUMNS>();
    let mut sums = [0.0; PANEL_COLUMNS];
    for (one, other) in one.iter().zip(other) {
        for (sum, (one, other)) in sums.iter_mut().zip(one.iter().zip(other)) {
            *sum += one * other;
        }
    }
    let rest = one_rest
        .iter()
        .zip(other_rest)
        .map(|(one, other)| one * other);
    sums.iter().sum::<f32>() + rest.sum::<f32>()
}

/// Row `row` of a matrix of `count` columns, times the router's outputs.
fn dot_few(matrix: &[f32], row: usize, modalities: &[f32; MAX_STREAMS], count: usize) -> f32 {
    let row = &matrix[row * count..][..count];
    row.iter()
        .zip(modalities)
        .map(|(one, other)| one * other)
        .sum()
}

/// Add to each of `count` streams, which follow one another in `streams`, all of them times the factors of the pair.
fn predict(streams: &mut [f32], count: usize, factor: impl Fn(usize) -> f32) {
    let stride = streams.len() / count;
    let mut factors = [[0.0; MAX_STREAMS]; MAX_STREAMS];
    for pair in 0..count * count {
        factors[pair / count][pair % count] = factor(pair);
    }
    for first in (0..stride).step_by(PANEL_COLUMNS) {
        let mut present = [[0.0; PANEL_COLUMNS]; MAX_STREAMS];
        for (stream, present) in present[..count].iter_mut().enumerate() {
            present.copy_from_slice(&streams[stream * stride + first..][..PANEL_COLUMNS]);
        }
        for (stream, factors) in factors[..count].iter().enumerate() {
            let values = &mut streams[stream * stride + first..][..PANEL_COLUMNS];
            for (other, factor) in present[..count].iter().zip(factors) {
                for (value, other) in values.iter_mut().zip(other) {
                    *value += factor * other;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_predicted_from_all() {
        let mut streams: Vec<f32> = [1.0, 10.0].iter().flat_map(|&x| [x; 32]).collect();
        let factors = [0.5, 0.25, -1.0, 2.0];
        predict(&mut streams, 2, |pair| factors[pair]);
        assert_eq!(streams[..32], [1.0 + 0.5 + 2.5; 32]);
        assert_eq!(streams[32..], [10.0 - 1.0 + 20.0; 32]);
    }

    #[test]
    fn products_of_rows_of_any_length_are_added() {
        for len in [1, 15, 16, 17, 40] {
            let row: Vec<f32> = (0..len).map(|at| at as f32).collect();
            let expected: f32 = (0..len).map(|at| (at * at) as f32).sum();
            assert_eq!(dot(&row, &row), expected);
        }
        let matrix = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(dot_few(&matrix, 1, &[1.0, 10.0, 100.0, f32::NAN], 3), 654.0);
    }
}
