//! Buffers of a step for experts. They are empty for a model without experts.

use super::rows::{ExpertRows, most_tiled_rows};
use crate::arena::Buffer;
use crate::error::KernelError;
use crate::pack::PANEL_COLUMNS;
use crate::pack::layout::GROUP;
use crate::scratch::{ActivationBuffers, QuantBuffers, REDUNDANT_ROWS};
use crate::spec::{ExpertsSpec, FeedForwardSpec, ModelSpec};

/// Floats of a worker's outputs, at least: 1 MiB, so that they stay in the cache of a core.
const OUTPUT_FLOATS: usize = 1 << 18;

/// Floats of a worker's activated columns, at least: 128 KiB.
const ACTIVATED_FLOATS: usize = 1 << 15;

/// The largest sizes among the layers with experts; zeros if there are none.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExpertSizes {
    count: usize,
    used: usize,
    intermediate: usize,
    hidden: usize,
}

impl ExpertSizes {
    pub fn of(spec: &ModelSpec) -> Self {
        let mut sizes = Self::default();
        for layer in &spec.layers {
            if let Some(FeedForwardSpec::Experts(experts)) = &layer.ffn {
                sizes.add(experts, spec.hidden_size);
            }
        }
        sizes
    }

    fn add(&mut self, experts: &ExpertsSpec, hidden: usize) {
        self.count = self.count.max(experts.count);
        self.used = self.used.max(experts.used);
        self.intermediate = self.intermediate.max(experts.intermediate_size);
        self.hidden = hidden;
    }

    /// Floats from one row of the experts' gated activations to the next.
    pub fn gate_stride(self) -> usize {
        self.intermediate.next_multiple_of(PANEL_COLUMNS)
    }

    /// Floats from one row of the router's logits to the next. The last panel is that of the shared network's weight.
    pub fn logit_stride(self) -> usize {
        match self.count {
            0 => 0,
            count => count.next_multiple_of(PANEL_COLUMNS) + PANEL_COLUMNS,
        }
    }
}

/// Buffers of one worker.
#[derive(Debug)]
pub struct WorkerExperts {
    /// `[count]`: a row's logits while its experts are chosen.
    pub logits: Vec<f32>,
    /// `[REDUNDANT_ROWS * used]`: experts of few rows.
    pub chosen: Vec<u32>,
    /// Their weights.
    pub weights: Vec<f32>,
    pub rows: ExpertRows,
    /// `[tokens, hidden]`: the rows of one expert.
    pub gathered: ActivationBuffers,
    /// Activated columns of a network before they are quantized: at least `[tokens, 32]`.
    pub activated: Buffer<f32>,
    /// `[uses + tokens, some panels]`: outputs of experts and of the shared network before they are added.
    pub outputs: Buffer<f32>,
    /// For each item of a phase, the cost of all items up to it.
    pub costs: Vec<usize>,
}

impl WorkerExperts {
    /// For steps of at most `tokens` rows.
    pub fn new(sizes: ExpertSizes, tokens: usize, widest: usize) -> Result<Self, KernelError> {
        let uses = tokens * sizes.used;
        let if_any = |size: usize| if sizes.count == 0 { 0 } else { size };
        // Two panels are multiplied at once.
        let outputs = (uses + tokens) * 2 * PANEL_COLUMNS;
        Ok(Self {
            logits: vec![0.0; sizes.count],
            chosen: vec![0; REDUNDANT_ROWS * sizes.used],
            weights: vec![0.0; REDUNDANT_ROWS * sizes.used],
            rows: ExpertRows::with_capacity(uses, sizes.count),
            gathered: ActivationBuffers::new(if_any(tokens), sizes.hidden)?,
            activated: Buffer::new(if_any(ACTIVATED_FLOATS.max(tokens * GROUP)))?,
            outputs: Buffer::new(if_any(OUTPUT_FLOATS.max(outputs)))?,
            costs: Vec::with_capacity(if_any(
                (sizes.count * sizes.intermediate + widest) / PANEL_COLUMNS,
            )),
        })
    }
}

/// Buffers shared by all workers.
#[derive(Debug)]
pub struct SharedExperts {
    /// `[tokens, count]`, padded to panels, and a panel for the weight of the shared network.
    pub logits: Buffer<f32>,
    /// `[tokens, used]`: experts of many rows.
    pub chosen: Buffer<u32>,
    /// Their weights.
    pub weights: Buffer<f32>,
    /// `[uses, intermediate]`, by place: gated activations, if the down projection takes floats.
    pub gate: Buffer<f32>,
    /// The same, if it takes quantized rows; those of each expert begin at a row tile.
    pub gated: QuantBuffers,
    pub sizes: ExpertSizes,
}

impl SharedExperts {
    /// For steps of at most `tokens` rows.
    pub fn new(sizes: ExpertSizes, tokens: usize) -> Result<Self, KernelError> {
        let uses = tokens * sizes.used;
        Ok(Self {
            logits: Buffer::new(tokens * sizes.logit_stride())?,
            chosen: Buffer::new(uses)?,
            weights: Buffer::new(uses)?,
            gate: Buffer::new(uses * sizes.gate_stride())?,
            gated: QuantBuffers::new(most_tiled_rows(uses, sizes.count), sizes.gate_stride())?,
            sizes,
        })
    }
}
