//! The buffers of a step, allocated once: a step allocates nothing.

use std::cell::UnsafeCell;

use crate::activation_quant::{OutlierPositions, TILE_ROWS, TileGroup};
use crate::amx::row_tiles::{self, RowTile};
use crate::arena::Buffer;
use crate::attention;
use crate::error::KernelError;
use crate::gemm::PanelScratch;
use crate::pack::PANEL_COLUMNS;
use crate::pack::layout::GROUP;
use crate::phase_clock::PhaseClock;
use crate::plan::{Limits, MAX_DRAFT_TOKENS};
use crate::sampler;
use crate::sampler::{MAX_LOGPROB_TOKEN_IDS, MAX_TOP_LOGPROBS};
use crate::spec::ModelSpec;

/// Up to this number of rows, every worker prepares all activations for itself, which is cheaper than a barrier.
pub const REDUNDANT_ROWS: usize = 8;

/// The fewest rows of logits held at once: enough that scoring a prompt rarely reads the LM head again.
const MIN_LOGIT_ROWS: usize = 32;

/// Quantized rows.
#[derive(Debug)]
pub struct QuantBuffers {
    /// `[ceil(rows / 4), widest / 32]`
    pub tiles: Buffer<TileGroup>,
    /// As many; written for normalized rows only.
    pub outlier_positions: Buffer<OutlierPositions>,
    /// `[ceil(rows / 16), widest / 32]`; written, and so backed by memory, on level `amx` only.
    pub row_tiles: Buffer<RowTile>,
}

impl QuantBuffers {
    fn new(rows: usize, widest: usize) -> Result<Self, KernelError> {
        let groups = widest.div_ceil(GROUP);
        let tile_groups = rows.div_ceil(TILE_ROWS) * groups;
        Ok(Self {
            tiles: Buffer::new(tile_groups)?,
            outlier_positions: Buffer::new(tile_groups)?,
            row_tiles: Buffer::new(rows.div_ceil(row_tiles::ROWS) * groups)?,
        })
    }
}

/// Activations in the forms that GEMMs take.
#[derive(Debug)]
pub struct ActivationBuffers {
    /// `[rows, widest]`
    pub float: Buffer<f32>,
    pub quant: QuantBuffers,
}

impl ActivationBuffers {
    fn new(rows: usize, widest: usize) -> Result<Self, KernelError> {
        Ok(Self {
            float: Buffer::new(rows * widest)?,
            quant: QuantBuffers::new(rows, widest)?,
        })
    }
}

/// Buffers of one worker.
#[derive(Debug)]
pub struct WorkerScratch {
    /// For up to [`REDUNDANT_ROWS`] rows.
    pub activations: ActivationBuffers,
    /// `[tokens, padded head dimension]`: a key or value head before it is written to the KV cache.
    pub head: Buffer<f32>,
    /// `[tokens, 32]`: two panels of the gate projection, or `[tokens, 16]`: one panel.
    pub gate: Buffer<f32>,
    /// The same for the up projection.
    pub up: Buffer<f32>,
    /// For GEMMs.
    pub panel: PanelScratch,
    pub attention: attention::Scratch,
    pub sampler: sampler::Scratch,
    pub clock: PhaseClock,
}

/// One value per worker, accessed only by that worker.
#[derive(Debug)]
pub struct PerWorker<T>(Vec<UnsafeCell<T>>);

// SAFETY: by the contract of `get`, only one worker accesses each value.
unsafe impl<T: Send> Sync for PerWorker<T> {}

impl<T> PerWorker<T> {
    /// # Safety
    /// Called with a worker's own index, by that worker, once during a job.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn get(&self, index: usize) -> &mut T {
        // SAFETY: exclusive by contract.
        unsafe { &mut *self.0[index].get() }
    }

    /// Every worker's value, between jobs.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(UnsafeCell::get_mut)
    }
}

/// Buffers shared by all workers, each of which writes its own part between two barriers.
#[derive(Debug)]
pub struct Scratch {
    /// `[tokens, hidden]`: the residual stream. Strides are padded to whole panels.
    pub hidden: Buffer<f32>,
    pub activations: ActivationBuffers,
    /// `[tokens, heads * padded head dimension]`
    pub q: Buffer<f32>,
    /// `[tokens, heads * head dimension]`
    pub attention: Buffer<f32>,
    /// `[tokens, intermediate]`: `silu(gate) * up`, if the down projection takes floats.
    pub gate: Buffer<f32>,
    /// The same, if the down projection takes quantized rows.
    pub gated: QuantBuffers,
    /// `[logit_rows, vocabulary]`: a step that needs more rows computes them in parts.
    pub logits: Buffer<f32>,
    pub logit_rows: usize,
    pub results: Results,
    pub partials: Partials,
    pub score_results: ScoreResults,
    pub workers: PerWorker<WorkerScratch>,
    pub strides: Strides,
}

/// Partial results of attention over long contexts, until all splits of a task are complete.
#[derive(Debug)]
pub struct Partials {
    /// For each task `[splits, rows of the task, partial floats]`, with room for the most splits.
    buffer: Buffer<f32>,
    splits: usize,
    /// Floats of a row's partial result.
    pub row_floats: usize,
}

impl Partials {
    fn new(spec: &ModelSpec, limits: &Limits, workers: usize) -> Result<Self, KernelError> {
        let splits = limits.max_model_len.div_ceil(attention::SPLIT);
        let rows = attention::max_split_rows(spec, workers);
        let row_floats = attention::partial_floats(spec.head_dim);
        Ok(Self {
            buffer: Buffer::new(rows * splits * row_floats)?,
            splits,
            row_floats,
        })
    }

    /// Start of the partial results of the task with rows `[first_row, first_row + rows)` of those computed in splits.
    pub fn of_task(&self, first_row: usize, rows: usize) -> *mut f32 {
        let stride = self.splits * self.row_floats;
        assert!((first_row + rows) * stride <= self.buffer.len());
        // SAFETY: inside the buffer by the check.
        unsafe { self.buffer.ptr().add(first_row * stride) }
    }
}

/// Sampling results of a step, by index into [`crate::plan::Plan::samples`].
#[derive(Debug)]
pub struct Results {
    /// `[rows + MAX_DRAFT_TOKENS]`
    pub sampled: Buffer<i32>,
    pub logprobs: Buffer<f32>,
    /// `[rows + MAX_DRAFT_TOKENS, MAX_TOP_LOGPROBS]`
    pub top_ids: Buffer<i32>,
    pub top_logprobs: Buffer<f32>,
    /// `[rows * MAX_LOGPROB_TOKEN_IDS]`, by index into the plan's token ids with logprobs.
    pub token_id_logprobs: Buffer<f32>,
}

/// Scoring results of a step, by index into [`crate::plan::Plan::scores`].
#[derive(Debug)]
pub struct ScoreResults {
    /// `[tokens]`
    pub logprobs: Buffer<f32>,
    pub ranks: Buffer<i32>,
    /// `[tokens, MAX_TOP_LOGPROBS]`
    pub top_ids: Buffer<i32>,
    pub top_logprobs: Buffer<f32>,
}

/// Floats from one row to the next.
#[derive(Debug, Clone, Copy)]
pub struct Strides {
    pub hidden: usize,
    pub head: usize,
    pub q: usize,
    pub attention: usize,
    pub gate: usize,
    pub logits: usize,
    /// The widest activations.
    pub widest: usize,
}

impl Strides {
    fn new(spec: &ModelSpec) -> Self {
        let pad = |width: usize| width.next_multiple_of(PANEL_COLUMNS);
        let head = pad(spec.head_dim);
        let (hidden, gate) = (pad(spec.hidden_size), pad(spec.intermediate_size));
        let attention = pad(spec.num_heads * spec.head_dim);
        Self {
            hidden: padded_stride(hidden),
            head,
            q: padded_stride(spec.num_heads * head),
            attention: padded_stride(attention),
            gate: padded_stride(gate),
            logits: padded_stride(pad(spec.vocab_size)),
            widest: hidden.max(gate).max(attention),
        }
    }
}

/// A stride of at least `width` floats that avoids cache conflicts between the same columns of many rows: with a stride
/// of whole half pages they would all map to two cache sets.
fn padded_stride(width: usize) -> usize {
    const HALF_PAGE: usize = 2048 / size_of::<f32>();
    if width.is_multiple_of(HALF_PAGE) {
        width + PANEL_COLUMNS
    } else {
        width
    }
}

impl Scratch {
    pub fn new(spec: &ModelSpec, limits: &Limits, workers: usize) -> Result<Self, KernelError> {
        let strides = Strides::new(spec);
        let (tokens, rows) = (limits.max_batched_tokens, limits.max_rows);
        let samples = rows + MAX_DRAFT_TOKENS;
        let logit_rows = rows.max(MIN_LOGIT_ROWS).min(tokens);
        let worker = || -> Result<UnsafeCell<WorkerScratch>, KernelError> {
            Ok(UnsafeCell::new(WorkerScratch {
                activations: ActivationBuffers::new(REDUNDANT_ROWS, strides.widest)?,
                head: Buffer::new(tokens * strides.head)?,
                gate: Buffer::new(tokens * GROUP)?,
                up: Buffer::new(tokens * GROUP)?,
                panel: PanelScratch::new(tokens, strides.widest)?,
                attention: attention::Scratch::new(),
                sampler: sampler::Scratch::new(spec.vocab_size, limits.max_model_len),
                clock: PhaseClock::default(),
            }))
        };
        Ok(Self {
            hidden: Buffer::new(tokens * strides.hidden)?,
            activations: ActivationBuffers::new(tokens, strides.widest)?,
            q: Buffer::new(tokens * strides.q)?,
            attention: Buffer::new(tokens * strides.attention)?,
            gate: Buffer::new(tokens * strides.gate)?,
            gated: QuantBuffers::new(tokens, strides.gate)?,
            logits: Buffer::new(logit_rows * strides.logits)?,
            logit_rows,
            results: Results {
                sampled: Buffer::new(samples)?,
                logprobs: Buffer::new(samples)?,
                top_ids: Buffer::new(samples * MAX_TOP_LOGPROBS)?,
                top_logprobs: Buffer::new(samples * MAX_TOP_LOGPROBS)?,
                token_id_logprobs: Buffer::new(rows * MAX_LOGPROB_TOKEN_IDS)?,
            },
            score_results: ScoreResults {
                logprobs: Buffer::new(tokens)?,
                ranks: Buffer::new(tokens)?,
                top_ids: Buffer::new(tokens * MAX_TOP_LOGPROBS)?,
                top_logprobs: Buffer::new(tokens * MAX_TOP_LOGPROBS)?,
            },
            partials: Partials::new(spec, limits, workers)?,
            workers: PerWorker((0..workers).map(|_| worker()).collect::<Result<_, _>>()?),
            strides,
        })
    }
}
