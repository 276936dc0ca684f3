//! The feed-forward of a layer of experts beside a network, each with norms of its own.
//!
//! The network is computed first, as one by itself, and then the experts, in the phases of [`super::experts`]. Both outputs
//! are written as branches, which are normalized and added before the layer's own norm.

use super::experts::Experts;
use super::{
    ADD_BESIDE, ADD_FFN, BESIDE_DOWN, BESIDE_GATE_UP, GATE_UP, ROUTER, Step, Target, barrier_wait,
};
use crate::phase_clock::Phase;
use crate::pool::Worker;
use crate::scratch::{REDUNDANT_ROWS, WorkerScratch};
use crate::spec::MlpSpec;
use crate::weights::{LayerWeights, MlpWeights, OwnNorms};

impl Step<'_> {
    /// The feed-forward of layer `index`, added to the residual stream.
    pub(super) fn use_experts_beside<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        layer: &LayerWeights,
        (experts, norms): (Experts<'_>, &OwnNorms),
        network: (&MlpSpec, &MlpWeights),
    ) {
        let norm = layer.ffn_norm.as_ref();
        self.gate_and_up(worker, own, (index, BESIDE_GATE_UP), norm, network);
        barrier_wait(worker, own, Phase::GateUp);
        self.project_down(worker, own, (index, BESIDE_DOWN), network.1, true);
        barrier_wait(worker, own, Phase::Down);
        self.write_experts(worker, own, index, experts, norms);
        barrier_wait(worker, own, Phase::Down);
        let post_norms = [norms.shared_post.as_slice(), &norms.experts_post];
        self.join_branches(worker, index, ADD_BESIDE, post_norms);
        barrier_wait(worker, own, Phase::Down);
        self.add_branch(worker, index, ADD_FFN, layer.ffn_post_norm.as_deref());
        barrier_wait(worker, own, Phase::Down);
    }

    /// Write the experts' output as the second branch.
    fn write_experts<'w>(
        &'w self,
        worker: &'w Worker<'w>,
        own: &mut WorkerScratch,
        index: usize,
        experts: Experts<'_>,
        norms: &OwnNorms,
    ) {
        let (rows, weights) = (self.rows_after_attention(index), experts.weights);
        let source = self.hidden(Some(&norms.router));
        let counter = self.prepare_counter(index, ROUTER);
        let activations = self.prepare(worker, own, rows, source, &weights.routers(), counter);
        self.multiply_routers(worker, own, index, rows, &activations, weights);
        barrier_wait(worker, own, Phase::Router);
        if rows > REDUNDANT_ROWS {
            self.choose_together(worker, own, index, rows, experts);
            barrier_wait(worker, own, Phase::Router);
        }
        let source = self.hidden(Some(&norms.experts));
        let counter = self.prepare_counter(index, GATE_UP);
        let users = weights.experts.inputs();
        let activations = self.prepare(worker, own, rows, source, &users, counter);
        let grouped = self.group_rows(worker, own, rows, experts);
        if grouped {
            self.activate_experts(worker, own, index, &activations, rows, experts);
        }
        barrier_wait(worker, own, Phase::GateUp);
        if grouped || self.group_rows(worker, own, rows, experts) {
            let target = Target::replace(self.second_branch_rows());
            self.add_experts(worker, own, index, rows, experts, target);
        }
    }
}
