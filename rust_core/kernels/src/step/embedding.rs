//! The first phase of a step: the residual stream from the tokens' embeddings.

use super::{EMBED, Step};
use crate::pool::Worker;
use crate::scratch::WorkerScratch;
use crate::work_share::Parts;

impl Step<'_> {
    /// Write each token's embedding, and that of its position if the model has such, to the residual stream.
    pub(super) fn embed<'w>(&'w self, worker: &'w Worker<'w>, own: &WorkerScratch) {
        let (spec, weights) = (&self.model.spec, &self.model.weights);
        let (tokens, counter) = (self.tokens(), self.counter(self.layers(), EMBED));
        let hidden = self.hidden_rows().columns(0, spec.hidden_size);
        for token in Parts::new(worker, counter, tokens, tokens).flatten() {
            // SAFETY: only this worker uses this row of the residual stream.
            let row = unsafe { hidden.row_mut(token) };
            let id = self.plan.token_ids[token] as usize;
            weights.embedding.unpack_output(id, row);
            if spec.embedding_multiplier != 1.0 {
                row.iter_mut()
                    .for_each(|value| *value *= spec.embedding_multiplier);
            }
            if let Some(embedding) = &weights.position_embedding {
                // SAFETY: this worker's own buffer.
                let position = unsafe { own.activations.float.slice_mut(0, spec.hidden_size) };
                embedding.unpack_output(self.plan.positions[token] as usize, position);
                for (sum, value) in row.iter_mut().zip(position) {
                    *sum += *value;
                }
            }
        }
    }
}
