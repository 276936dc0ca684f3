//! The buffers of a step, allocated once: a step allocates nothing.

use std::cell::UnsafeCell;

use crate::activation_quant::{OutlierPositions, TILE_ROWS, TileGroup};
use crate::amx::row_tiles::{self, RowTile};
use crate::arena::Buffer;
use crate::attention;
use crate::error::KernelError;
use crate::experts::buffers::{ExpertSizes, SharedExperts, WorkerExperts};
use crate::gemm::PanelScratch;
use crate::pack::PANEL_COLUMNS;
use crate::pack::layout::GROUP;
use crate::phase_clock::PhaseClock;
use crate::plan::{Limits, MAX_DRAFT_TOKENS};
use crate::recurrent::scan::ScanScratch;
use crate::sampler;
use crate::sampler::{MAX_LOGPROB_TOKEN_IDS, MAX_TOP_LOGPROBS};
use crate::spec::{AttentionSpec, LayerSpec, MixerSpec, ModelSpec};

/// Up to this number of rows, every worker prepares all activations for itself, which is cheaper than a barrier.
pub const REDUNDANT_ROWS: usize = 8;

/// The fewest rows of logits held at once: enough that scoring a prompt rarely reads the LM head again.
const MIN_LOGIT_ROWS: usize = 32;

/// Quantized rows.
#[derive(Debug)]
pub struct QuantBuffers {
    /// `[ceil(rows / 4), widest / 32]`
    pub tiles: Buffer<TileGroup>,
    /// As many; written only where outliers are kept.
    pub outlier_positions: Buffer<OutlierPositions>,
    /// `[ceil(rows / 16), widest / 32]`; written, and so backed by memory, on level `amx` only.
    pub row_tiles: Buffer<RowTile>,
}

impl QuantBuffers {
    pub fn new(rows: usize, widest: usize) -> Result<Self, KernelError> {
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
    pub fn new(rows: usize, widest: usize) -> Result<Self, KernelError> {
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
    /// `[layers * width]`: a token's row of the layers' own embeddings, if they have any.
    pub embedding: Buffer<f32>,
    /// `[tokens, padded head dimension]`: a key or value head before it is written to the KV cache.
    pub head: Buffer<f32>,
    /// `[tokens, 32]`: two panels of the gate projection, or `[tokens, 16]`: one panel.
    pub gate: Buffer<f32>,
    /// The same for the up projection.
    pub up: Buffer<f32>,
    /// For GEMMs.
    pub panel: PanelScratch,
    pub experts: WorkerExperts,
    /// For heads with a recurrent state.
    pub scan: ScanScratch,
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
    /// `[tokens, KV heads * padded head dimension]`: keys until they are normalized over all heads, if they are.
    pub k: Buffer<f32>,
    /// `[tokens, heads * head dimension]`; the outputs of other mixers, too.
    pub attention: Buffer<f32>,
    /// `[tokens, mixed]`: projected inputs of heads with a recurrent state; see [`crate::recurrent::head::RowLayout`].
    pub mixed: Buffer<f32>,
    /// As `attention`: what its sigmoid is multiplied with, if layers have an attention gate.
    pub attention_gate: Buffer<f32>,
    /// `[tokens, hidden]`: the output of a mixer or feed-forward that is normalized or scaled before it is added.
    pub branch: Buffer<f32>,
    /// The same for experts beside a network, if both are normalized.
    pub second_branch: Buffer<f32>,
    /// `[tokens, streams, hidden]`, where there are several residual streams; the strides of a stream are padded to panels.
    pub streams: Buffer<f32>,
    /// `[tokens, hidden]`: what is added beside a mixer.
    pub laurel: Buffer<f32>,
    /// `[tokens, layers * width]`: each layer's own embeddings of the tokens, if they have any.
    pub per_layer: Buffer<f32>,
    /// `[tokens, intermediate]`: activated columns, if the down projection takes floats, and of few rows before they are quantized.
    pub gate: Buffer<f32>,
    /// The same, if the down projection takes quantized rows.
    pub gated: QuantBuffers,
    /// As `gate`: the other half of a feed-forward whose gates are cut.
    pub up: Buffer<f32>,
    pub experts: SharedExperts,
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
        let attentions = || spec.attentions().map(|(_, attention)| attention);
        let rows = attentions().map(|one| attention::max_split_rows(one, workers));
        let rows = rows.max().unwrap_or(0);
        let dims = attentions().map(|one| attention::partial_floats(one.head_dim));
        let row_floats = dims.max().unwrap_or(0);
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
    /// Of the widest heads.
    pub head: usize,
    pub q: usize,
    pub k: usize,
    pub attention: usize,
    pub mixed: usize,
    pub gate: usize,
    pub logits: usize,
    pub per_layer: usize,
    /// Of all streams of a token.
    pub streams: usize,
    /// The widest activations.
    pub widest: usize,
}

impl Strides {
    fn new(spec: &ModelSpec, experts: ExpertSizes) -> Self {
        let pad = |width: usize| width.next_multiple_of(PANEL_COLUMNS);
        let most = |width: fn(&AttentionSpec) -> usize| {
            let widths = spec.attentions().map(|(_, attention)| width(attention));
            widths.max().unwrap_or(0)
        };
        let head = pad(most(|one| one.head_dim));
        let intermediate = spec.layers.iter().map(LayerSpec::intermediate_size).max();
        let (hidden, gate) = (pad(spec.hidden_size), pad(intermediate.unwrap_or(0)));
        let gate = gate
            .max(pad(spec.per_layer_width))
            .max(pad(spec.laurel_rank));
        let streams = spec.streams.map_or(0, |streams| streams.count);
        let attention = pad(most(|one| one.num_heads * one.head_dim));
        let mixers = || spec.layers.iter().filter_map(|layer| layer.mixer.as_ref());
        let outputs = mixers().map(|mixer| mixer.recurrent_outputs(spec.hidden_size));
        let attention = attention.max(pad(outputs.max().unwrap_or(0)));
        let mixed = mixers().filter_map(MixerSpec::heads);
        let mixed = mixed.map(|heads| heads.layout().width).max().unwrap_or(0);
        Self {
            hidden: padded_stride(hidden),
            head,
            q: padded_stride(most(|one| one.num_heads) * head),
            k: padded_stride(most(|one| one.num_kv_heads) * head),
            attention: padded_stride(attention),
            mixed: padded_stride(mixed),
            gate: padded_stride(gate),
            logits: padded_stride(pad(spec.vocab_size)),
            per_layer: padded_stride(pad(spec.layers.len() * spec.per_layer_width)),
            streams: padded_stride(streams * hidden),
            widest: hidden.max(gate).max(attention).max(experts.gate_stride()),
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
        let experts = ExpertSizes::of(spec);
        let strides = Strides::new(spec, experts);
        let (tokens, rows) = (limits.max_batched_tokens, limits.max_rows);
        let samples = rows + MAX_DRAFT_TOKENS;
        // Rows of a buffer that only some models need.
        let tokens_if = |needed: bool| if needed { tokens } else { 0 };
        let has = |role: &str| spec.layers.iter().any(|layer| layer.has(role));
        let normed_as_a_whole = spec.attentions().any(|(_, one)| one.qk_norm_whole);
        let branched = spec.residual_multiplier != 1.0
            || has("mixer_post_norm")
            || has("ffn_post_norm")
            || has("experts_norm")
            || spec.per_layer_width > 0
            || spec.streams.is_some();
        let cuts_gates = spec.layers.iter().any(LayerSpec::cuts_gates);
        let logit_rows = rows.max(MIN_LOGIT_ROWS).min(tokens);
        let mixers = spec.layers.iter().filter_map(|layer| layer.mixer.as_ref());
        let shapes = mixers.filter_map(MixerSpec::heads).map(|heads| heads.shape);
        let (key_dim, value_dim) = shapes.fold((0, 0), |(keys, values), shape| {
            (keys.max(shape.key_dim), values.max(shape.value_dim))
        });
        let worker = || -> Result<UnsafeCell<WorkerScratch>, KernelError> {
            Ok(UnsafeCell::new(WorkerScratch {
                activations: ActivationBuffers::new(REDUNDANT_ROWS, strides.widest)?,
                embedding: Buffer::new(spec.layers.len() * spec.per_layer_width)?,
                head: Buffer::new(tokens * strides.head)?,
                gate: Buffer::new(tokens * GROUP)?,
                up: Buffer::new(tokens * GROUP)?,
                panel: PanelScratch::new(tokens, strides.widest)?,
                experts: WorkerExperts::new(experts, tokens, strides.gate)?,
                scan: ScanScratch::new(key_dim, value_dim)?,
                attention: attention::Scratch::new(),
                sampler: sampler::Scratch::new(spec.vocab_size, limits.max_model_len),
                clock: PhaseClock::default(),
            }))
        };
        Ok(Self {
            hidden: Buffer::new(tokens * strides.hidden)?,
            activations: ActivationBuffers::new(tokens, strides.widest)?,
            q: Buffer::new(tokens * strides.q)?,
            k: Buffer::new(tokens_if(normed_as_a_whole) * strides.k)?,
            attention: Buffer::new(tokens * strides.attention)?,
            mixed: Buffer::new(tokens * strides.mixed)?,
            attention_gate: Buffer::new(tokens_if(has("attention_gate")) * strides.attention)?,
            branch: Buffer::new(tokens_if(branched) * strides.hidden)?,
            second_branch: Buffer::new(tokens_if(has("experts_norm")) * strides.hidden)?,
            streams: Buffer::new(tokens_if(spec.streams.is_some()) * strides.streams)?,
            laurel: Buffer::new(tokens_if(spec.laurel_rank > 0) * strides.hidden)?,
            per_layer: Buffer::new(tokens_if(spec.per_layer_width > 0) * strides.per_layer)?,
            gate: Buffer::new(tokens * strides.gate)?,
            gated: QuantBuffers::new(tokens, strides.gate)?,
            up: Buffer::new(tokens_if(cuts_gates) * strides.gate)?,
            experts: SharedExperts::new(experts, tokens)?,
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
