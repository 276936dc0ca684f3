//! Embeddings that each layer has for itself (Gemma 3n, 4): computed before the layers, added after each.
//!
//! The input of layer l is `(embedding[token][l] * sqrt(width) + norm(projection(hidden) / sqrt(hidden size))[l]) / sqrt(2)`;
//! the layer adds `norm(project(act(gate(hidden)) * input))`.

use super::activations::Source;
use super::rows_view::RowsView;
use super::{
    ADD_PER_LAYER, COMBINE_EMBEDDINGS, PER_LAYER_GATE, PER_LAYER_OUTPUT, PROJECT_EMBEDDINGS, Step,
    Target, barrier_wait,
};
use crate::activation::activate_panel;
use crate::norm::rms_scale;
use crate::pack::PANEL_COLUMNS;
use crate::phase_clock::Phase;
use crate::pool::Worker;
use crate::scratch::WorkerScratch;
use crate::spec::Activation;
use crate::weights::PerLayerWeights;
use crate::work_share::Parts;

impl Step<'_> {
    /// Rows of the layers' own embeddings.
    fn per_layer_rows(&self) -> RowsView {
        RowsView::of(&self.scratch.per_layer, self.scratch.strides.per_layer)
    }

    /// Compute every layer's own embeddings of all tokens.
    pub(super) fn embed_per_layer<'w>(&'w self, worker: &'w Worker<'w>, own: &mut WorkerScratch) {
        let (spec, last, tokens) = (&self.model.spec, self.layers(), self.tokens());
        let Some(inputs) = &self.model.weights.per_layer else {
            return;
        };
        let counter = self.prepare_counter(last, PROJECT_EMBEDDINGS);
        let linear = &inputs.projection;
        let activations = self.prepare(worker, own, tokens, self.hidden(None), &[linear], counter);
        let counter = self.counter(last, PROJECT_EMBEDDINGS);
        let target = Target::replace(self.per_layer_rows());
        self.multiply_into(worker, own, tokens, &activations, linear, target, counter);
        barrier_wait(worker, own, Phase::Embed);
        let width = spec.per_layer_width;
        let all = spec.layers.len() * width;
        let (of_token, of_hidden) = (
            (width as f32).sqrt(),
            1.0 / (spec.hidden_size as f32).sqrt(),
        );
        let rows = self.per_layer_rows().columns(0, all);
        let counter = self.counter(last, COMBINE_EMBEDDINGS);
        for token in Parts::new(worker, counter, tokens, tokens).flatten() {
            // SAFETY: projected before a barrier; only this worker uses this row and its own buffer. The level was checked
            // at load.
            unsafe {
                let row = rows.row_mut(token);
                let embedding = own.embedding.slice_mut(0, all);
                let id = self.plan.token_ids[token] as usize;
                inputs.embedding.unpack_output(id, embedding);
                let parts = row
                    .chunks_exact_mut(width)
                    .zip(embedding.chunks_exact(width));
                for (projected, embedding) in parts {
                    projected.iter_mut().for_each(|value| *value *= of_hidden);
                    let scale = rms_scale(self.model.level, projected, spec.norm_eps);
                    let values = projected.iter_mut().zip(embedding).zip(&inputs.norm);
                    for ((value, embedding), weight) in values {
                        let normed = *value * scale * weight;
                        *value = (normed + embedding * of_token) * std::f32::consts::FRAC_1_SQRT_2;
                    }
                }
            }
        }
        barrier_wait(worker, own, Phase::Embed);
    }

    /// Add a layer's own embeddings, gated by the residual stream, to it.
    pub(super) fn add_per_layer<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        weights: &PerLayerWeights,
    ) {
        let (rows, width) = (
            self.rows_after_attention(index),
            self.model.spec.per_layer_width,
        );
        let counter = self.prepare_counter(index, PER_LAYER_GATE);
        let gate = &weights.gate;
        let activations = self.prepare(worker, own, rows, self.hidden(None), &[gate], counter);
        let counter = self.counter(index, PER_LAYER_GATE);
        let target = Target::replace(self.gate_rows());
        self.multiply_into(worker, own, rows, &activations, gate, target, counter);
        barrier_wait(worker, own, Phase::Down);
        // The next phase's rows: every worker multiplies those that it prepares, which may be all of them.
        self.gate_embeddings(worker, index, rows, width);
        barrier_wait(worker, own, Phase::Down);
        let source = Source {
            rows: self.gate_rows(),
            index: None,
            norm: None,
            keep_outliers: false,
        };
        let counter = self.prepare_counter(index, PER_LAYER_OUTPUT);
        let linear = &weights.projection;
        let activations = self.prepare(worker, own, rows, source, &[linear], counter);
        let counter = self.counter(index, PER_LAYER_OUTPUT);
        let target = self.branch_target(true);
        self.multiply_into(worker, own, rows, &activations, linear, target, counter);
        barrier_wait(worker, own, Phase::Down);
        match &self.model.spec.streams {
            None => self.add_branch(worker, index, ADD_PER_LAYER, Some(&weights.norm)),
            Some(_) => self.add_branch_to_streams(worker, index, ADD_PER_LAYER, &weights.norm),
        }
        barrier_wait(worker, own, Phase::Down);
    }

    /// `gate = act(gate) * embedding` of the layer, row by row.
    fn gate_embeddings<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        index: usize,
        rows: usize,
        width: usize,
    ) {
        let narrowed = self.is_narrowed(index);
        let counter = self.prepare_counter(index, ADD_PER_LAYER);
        let (gates, embeddings) = (self.gate_rows(), self.per_layer_rows());
        for row in Parts::new(worker, counter, rows, rows).flatten() {
            let token = if narrowed {
                self.logit_tokens[row]
            } else {
                row
            };
            for first in (0..width).step_by(PANEL_COLUMNS) {
                let gate = gates.columns(first, PANEL_COLUMNS).ptr(row);
                let of_layer = embeddings.columns(index * width + first, PANEL_COLUMNS);
                let (level, kind) = (self.model.level, Activation::GeluTanh);
                // SAFETY: only this worker uses this row; rows are padded to whole panels. The level was checked at load.
                unsafe {
                    activate_panel(
                        level,
                        kind,
                        gate,
                        of_layer.ptr(token),
                        gate,
                        PANEL_COLUMNS,
                        1,
                    );
                }
            }
        }
    }
}
