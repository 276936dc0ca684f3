//! The native executor: a loaded model, its KV cache, and one call per step.

mod block_copy;
#[cfg(test)]
mod level_tests;
mod memory_plan;
mod state_copy;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::arena::with_reserved_bytes;
use crate::attention::Work;
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::format::{TensorSource, open_model_weights};
use crate::kv_cache::{KvDtype, KvHeads, KvPools, KvShape, KvShapes};
use crate::packed_file::{PackedFile, PackedLocation, PackedSaving, PackedState};
use crate::phase_clock::Phase;
use crate::plan::{Limits, MAX_DRAFT_TOKENS, Plan, Run, StepInput};
use crate::pool::{CoreYielder, Pool};
use crate::quantize::WeightMode;
use crate::recurrent::states::StateCache;
use crate::rope::Rope;
use crate::sampler::MAX_TOP_LOGPROBS;
use crate::scratch::Scratch;
use crate::spec::{AttentionSpec, ModelSpec};
use crate::step::{COUNTERS, Model, Step, narrows};
use crate::topology::Topology;
use crate::weights::Weights;
use crate::work_share::FIXED_ROWS;

pub use self::memory_plan::MemoryPlan;

/// Most slots for recurrent states.
const MAX_STATE_SLOTS: usize = 1 << 20;

/// Configuration of an executor.
#[derive(Debug, Clone)]
pub struct ExecutorConfig {
    pub num_blocks: usize,
    pub block_size: usize,
    /// `stored`, `q8` or `q4`
    pub weights: String,
    /// `f16`, `f32` or `int8`
    pub kv_dtype: String,
    /// None: the physical cores this process may use.
    pub threads: Option<usize>,
    /// `auto`, `amx`, `avx512`, `avxvnni`, `avx2` or `portable`
    pub dispatch: String,
    pub max_rows: usize,
    pub max_batched_tokens: usize,
    pub max_model_len: usize,
    /// Slots for recurrent states; not used for a model without.
    pub state_slots: usize,
    /// Blocks of the layers that keep a window only ([`ModelSpec::windows`]); with 0 these keep every token too.
    pub window_blocks: usize,
    /// Where the packed weights are kept on disk; None packs them at every load.
    pub packed_weights: Option<PackedLocation>,
}

/// Properties of a loaded executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorInfo {
    pub dispatch: &'static str,
    pub threads: usize,
    pub weight_format: &'static str,
    /// Bytes of the packed weights.
    pub weight_bytes: usize,
    /// Bytes of the buffers of a step.
    pub work_bytes: usize,
    /// Bytes of the KV pool.
    pub kv_bytes: usize,
    pub kv_dtype: &'static str,
    pub parameters: usize,
    pub packed: PackedState,
}

/// Arrays that a step's results are written to, by batch index unless stated otherwise.
#[derive(Debug)]
pub struct StepOutput<'a> {
    /// -1 where no token was sampled.
    pub sampled: &'a mut [i32],
    /// NaN where not requested.
    pub logprobs: &'a mut [f32],
    /// `[rows, MAX_TOP_LOGPROBS]`
    pub top_ids: &'a mut [i32],
    pub top_logprobs: &'a mut [f32],
    /// `[L]`, by index into the input's `logprob_ids`; NaN where the row did not sample or its logits were unusable.
    pub token_id_logprobs: &'a mut [f32],
    /// 1 where the logits were unusable.
    pub failed: &'a mut [u8],
    /// Number of each row's accepted drafts: the leading ones that equal its samples. `sampled` follows them.
    pub accepted: &'a mut [i32],
    /// Of accepted drafts, by index among the step's drafts; at least as long as their number.
    pub draft_logprobs: &'a mut [f32],
    /// `[drafts, MAX_TOP_LOGPROBS]`
    pub draft_top_ids: &'a mut [i32],
    pub draft_top_logprobs: &'a mut [f32],
    /// By index into the input's scores; NaN where the logits were unusable.
    pub score_logprobs: &'a mut [f32],
    pub score_ranks: &'a mut [i32],
    /// `[scores, MAX_TOP_LOGPROBS]`
    pub score_top_ids: &'a mut [i32],
    pub score_top_logprobs: &'a mut [f32],
}

impl StepOutput<'_> {
    /// Whether the arrays have the lengths that the step needs.
    fn fits(&self, input: &StepInput<'_>) -> bool {
        let (rows, scores) = (input.rows.len(), input.score_tokens.len());
        let drafts = self.draft_logprobs.len();
        self.sampled.len() == rows
            && self.logprobs.len() == rows
            && self.failed.len() == rows
            && self.accepted.len() == rows
            && self.top_ids.len() == rows * MAX_TOP_LOGPROBS
            && self.top_logprobs.len() == rows * MAX_TOP_LOGPROBS
            && self.token_id_logprobs.len() == input.logprob_ids.len()
            && (drafts >= MAX_DRAFT_TOKENS || input.num_draft_tokens.is_empty())
            && self.draft_top_ids.len() == drafts * MAX_TOP_LOGPROBS
            && self.draft_top_logprobs.len() == drafts * MAX_TOP_LOGPROBS
            && self.score_logprobs.len() == scores
            && self.score_ranks.len() == scores
            && self.score_top_ids.len() == scores * MAX_TOP_LOGPROBS
            && self.score_top_logprobs.len() == scores * MAX_TOP_LOGPROBS
    }
}

/// A loaded model and its thread pool. Called by one thread at a time (`&mut self`).
pub struct Executor {
    model: Model,
    pool: Pool,
    scratch: Scratch,
    /// Bytes of `scratch`.
    work_bytes: usize,
    plan: Plan,
    /// One for each kind of attention.
    attention: Vec<Work>,
    /// A layer of each kind of attention.
    kinds: Vec<usize>,
    logit_tokens: Vec<usize>,
    counters: Vec<AtomicUsize>,
    timed: bool,
}

impl Executor {
    /// The file in which the packed weights of a model are kept. Reads headers only.
    ///
    /// # Errors
    /// The weight files or their tensors cannot be used.
    pub fn find_packed(
        spec: &ModelSpec,
        paths: &[PathBuf],
        weights: &str,
        location: &PackedLocation,
    ) -> Result<PackedFile, KernelError> {
        let source = open_model_weights(paths, spec.quantization)
            .map_err(|error| KernelError::model(error.to_string()))?;
        Weights::find_packed(spec, source.as_ref(), WeightMode::parse(weights)?, location)
    }

    /// Open the weight files, check every tensor, pack the weights, reserve the KV cache. `progress` is called with the fraction
    /// of the weights that is loaded, and returns whether to go on.
    pub fn load(
        spec: ModelSpec,
        paths: &[PathBuf],
        config: &ExecutorConfig,
        progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, KernelError> {
        let level = Level::choose(&config.dispatch)?;
        let source = open_model_weights(paths, spec.quantization)
            .map_err(|error| KernelError::model(error.to_string()))?;
        Self::of(spec, source.as_ref(), config, level, progress)
    }

    /// As [`Executor::load`] with weights from `source`, on a level that this machine has.
    fn of(
        spec: ModelSpec,
        source: &dyn TensorSource,
        config: &ExecutorConfig,
        level: Level,
        progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, KernelError> {
        let limits = limits_of(&spec, config)?;
        if spec.has_states() && !(1..=MAX_STATE_SLOTS).contains(&config.state_slots) {
            return Err(KernelError::config(format!(
                "state_slots is {}; it must be between 1 and {MAX_STATE_SLOTS}.",
                config.state_slots
            )));
        }
        let mode = WeightMode::parse(&config.weights)?;
        let windowed = spec.windows(limits.max_model_len).layers;
        let kv = kv_shape(&spec, config)?;
        let kv = KvPools::new(KvShapes::divide(kv, &windowed, limits.window_blocks))?;
        let states = StateCache::new(&spec.states(), limits.state_slots)?;
        let mut pool = Pool::new(config.threads, &Topology::detect())?;
        let weights = Weights::load(
            &spec,
            source,
            mode,
            level,
            config.packed_weights.as_ref(),
            &mut pool,
            progress,
        )?;
        let (scratch, work_bytes) =
            with_reserved_bytes(|| Scratch::new(&spec, &limits, pool.size()));
        let scratch = scratch?;
        let ropes = spec.ropes.iter();
        let ropes = ropes.map(|rope| Rope::new(rope, limits.max_model_len));
        let ropes = ropes.collect::<Result<_, _>>()?;
        let (kinds, work_of) = attention_kinds(&spec);
        let (rows, tokens) = (limits.max_rows, limits.max_batched_tokens);
        let heads = kinds.iter().map(|&layer| num_heads(&spec, layer));
        let attention = heads.map(|heads| Work::with_capacity(rows, tokens, heads));
        let attention = attention.collect();
        Ok(Self {
            plan: Plan::new(limits)?,
            attention,
            kinds,
            logit_tokens: Vec::with_capacity(
                limits.max_rows + MAX_DRAFT_TOKENS + limits.max_batched_tokens,
            ),
            counters: (0..(spec.layers.len() + 1) * COUNTERS)
                .map(|_| AtomicUsize::new(0))
                .collect(),
            model: Model {
                spec,
                weights,
                ropes,
                kv,
                states,
                work_of,
                level,
            },
            pool,
            scratch,
            work_bytes,
            timed: false,
        })
    }

    pub fn info(&self) -> ExecutorInfo {
        ExecutorInfo {
            dispatch: self.model.level.name(),
            threads: self.pool.size(),
            weight_format: self.model.weights.format,
            weight_bytes: self.model.weights.packed_bytes(),
            work_bytes: self.work_bytes,
            kv_bytes: self.model.kv.bytes(),
            kv_dtype: self.model.kv.full.shape().dtype.name(),
            parameters: self.model.weights.parameters,
            packed: self.model.weights.packed.clone(),
        }
    }

    /// What saves the packed weights, if they are to be kept and were not found on disk.
    pub fn packed_saving(&self) -> Option<Arc<PackedSaving>> {
        self.model.weights.saving.clone()
    }

    /// A handle with which any thread can make a compute thread yield its core.
    pub fn core_yielder(&self) -> CoreYielder {
        self.pool.core_yielder()
    }

    /// Enable or disable phase timing of the following steps.
    pub fn time_phases(&mut self, wanted: bool) {
        self.timed = wanted;
        self.take_phase_seconds();
    }

    /// Seconds spent in each phase since the last call, averaged over the workers. They sum to the time
    /// inside the steps.
    pub fn take_phase_seconds(&mut self) -> [(&'static str, f64); Phase::ALL.len()] {
        let mut phases = Phase::ALL.map(|(_, name)| (name, 0.0));
        let workers = self.pool.size() as f64;
        for worker in self.scratch.workers.iter_mut() {
            for ((_, seconds), nanos) in phases.iter_mut().zip(worker.clock.take()) {
                *seconds += nanos as f64 / 1e9 / workers;
            }
        }
        phases
    }

    /// Check a step and copy what it reads: the first of the three parts of a step, of which only the second takes long and
    /// that uses no memory of the caller.
    ///
    /// # Errors
    /// The step is invalid; do not call [`Self::compute`].
    pub fn begin(
        &mut self,
        input: &StepInput<'_>,
        output: &StepOutput<'_>,
    ) -> Result<(), KernelError> {
        if !output.fits(input) {
            return Err(KernelError::step(
                "The step's result arrays do not fit its rows.",
            ));
        }
        self.plan.fill(input)
    }

    /// Compute the step that was begun.
    pub fn compute(&mut self) -> Result<(), KernelError> {
        if self.plan.runs.is_empty() {
            return Ok(());
        }
        for run in &self.plan.runs {
            let first = run.first_position;
            for rope in &mut self.model.ropes {
                rope.prepare(first..first + run.tokens);
            }
        }
        for (work, &layer) in self.attention.iter_mut().zip(&self.kinds) {
            let spec = self.model.spec.layers[layer].attention();
            work.plan(spec.expect("attention"), &self.plan, self.pool.size());
        }
        self.logit_tokens.clear();
        let samples = self.plan.samples.iter().map(|sample| sample.token);
        let scores = self.plan.scores.iter().map(|score| score.token);
        self.logit_tokens
            .extend(samples.chain(scores).map(|token| token as usize));
        self.counters
            .iter()
            .for_each(|counter| counter.store(0, Ordering::Relaxed));
        let step = Step {
            model: &self.model,
            scratch: &self.scratch,
            plan: &self.plan,
            attention: &self.attention,
            logit_tokens: &self.logit_tokens,
            narrow: self.may_narrow() && narrows(&self.logit_tokens, self.plan.token_ids.len()),
            counters: &self.counters,
            timed: self.timed,
        };
        if self.plan.token_ids.len() > FIXED_ROWS {
            self.pool.run_elastic(&|worker| step.run(worker))
        } else {
            self.pool.run(&|worker| step.run(worker))
        }
    }

    /// Whether rows without logits can be dropped in the last layer: only attention looks at other rows. Of several residual
    /// streams all rows are kept.
    fn may_narrow(&self) -> bool {
        let spec = &self.model.spec;
        let last = spec.layers.last();
        spec.streams.is_none() && last.is_some_and(|layer| layer.attention().is_some())
    }

    /// Copy the results of the computed step to `output`, which is as long as at its beginning.
    pub fn finish(&self, output: &mut StepOutput<'_>) {
        self.copy_results(output);
        self.copy_scores(output);
    }

    /// Copy each run's accepted drafts and the sample that follows them: as long as a sample equals the draft, the next
    /// sample was computed after the right tokens.
    fn copy_results(&self, output: &mut StepOutput<'_>) {
        output.sampled.fill(-1);
        output.logprobs.fill(f32::NAN);
        output.failed.fill(0);
        output.accepted.fill(0);
        output.token_id_logprobs.fill(f32::NAN);
        let runs = self.plan.runs.iter().enumerate();
        for (batch, run) in runs.filter(|(_, run)| run.needs_logits) {
            let drafts = &self.plan.token_ids[run.start + run.tokens - run.drafts..][..run.drafts];
            // SAFETY: the step is over; no worker writes the results.
            let sampled = unsafe {
                self.scratch
                    .results
                    .sampled
                    .slice(run.first_sample, run.drafts + 1)
            };
            let accepted = drafts
                .iter()
                .zip(sampled)
                .take_while(|(d, s)| d == s)
                .count();
            for nth in 0..accepted {
                let to = run.first_draft + nth;
                output.draft_logprobs[to] = self.copy_sample(
                    run.first_sample + nth,
                    run,
                    &mut output.draft_top_ids[to * MAX_TOP_LOGPROBS..],
                    &mut output.draft_top_logprobs[to * MAX_TOP_LOGPROBS..],
                );
            }
            output.accepted[batch] = accepted as i32;
            output.sampled[batch] = sampled[accepted];
            output.logprobs[batch] = self.copy_sample(
                run.first_sample + accepted,
                run,
                &mut output.top_ids[batch * MAX_TOP_LOGPROBS..],
                &mut output.top_logprobs[batch * MAX_TOP_LOGPROBS..],
            );
            output.failed[batch] = u8::from(sampled[accepted] < 0);
            let (first, count) = run.logprob_ids;
            // SAFETY: as above.
            let logprobs = unsafe { self.scratch.results.token_id_logprobs.slice(first, count) };
            output.token_id_logprobs[first..first + count].copy_from_slice(logprobs);
        }
    }

    /// Copy a sample's top alternatives; returns its log-probability.
    fn copy_sample(&self, at: usize, run: &Run, ids: &mut [i32], logprobs: &mut [f32]) -> f32 {
        let results = &self.scratch.results;
        let wanted = run.sampling.num_logprobs.max(0) as usize;
        // SAFETY: the step is over; no worker writes the results.
        unsafe {
            ids[..wanted].copy_from_slice(results.top_ids.slice(at * MAX_TOP_LOGPROBS, wanted));
            logprobs[..wanted]
                .copy_from_slice(results.top_logprobs.slice(at * MAX_TOP_LOGPROBS, wanted));
            results.logprobs.slice(at, 1)[0]
        }
    }

    fn copy_scores(&self, output: &mut StepOutput<'_>) {
        let results = &self.scratch.score_results;
        let count = self.plan.scores.len();
        // SAFETY: the step is over; no worker writes the results.
        unsafe {
            let all = count * MAX_TOP_LOGPROBS;
            output
                .score_logprobs
                .copy_from_slice(results.logprobs.slice(0, count));
            output
                .score_ranks
                .copy_from_slice(results.ranks.slice(0, count));
            output
                .score_top_ids
                .copy_from_slice(results.top_ids.slice(0, all));
            output
                .score_top_logprobs
                .copy_from_slice(results.top_logprobs.slice(0, all));
        }
    }
}

/// Dimensions of the KV cache.
fn kv_shape(spec: &ModelSpec, config: &ExecutorConfig) -> Result<KvShape, KernelError> {
    let heads = |(_, attention): (usize, &AttentionSpec)| KvHeads {
        kv_heads: attention.num_kv_heads,
        head_dim: attention.head_dim,
    };
    Ok(KvShape {
        dtype: KvDtype::parse(&config.kv_dtype)?,
        blocks: config.num_blocks,
        block_size: config.block_size,
        layers: spec.cached_attentions().map(heads).collect(),
    })
}

/// Attention layers whose rows are divided into items in the same way: a layer of each kind, and each layer's kind.
fn attention_kinds(spec: &ModelSpec) -> (Vec<usize>, Vec<usize>) {
    let key = |one: &AttentionSpec| (one.num_heads, one.num_kv_heads, one.window);
    let mut kinds: Vec<usize> = Vec::new();
    let mut work_of = vec![0; spec.layers.len()];
    for (index, attention) in spec.attentions() {
        let same = |&kind: &usize| spec.layers[kind].attention().map(key) == Some(key(attention));
        work_of[index] = kinds.iter().position(same).unwrap_or(kinds.len());
        if work_of[index] == kinds.len() {
            kinds.push(index);
        }
    }
    (kinds, work_of)
}

/// Query heads of an attention layer.
fn num_heads(spec: &ModelSpec, layer: usize) -> usize {
    spec.layers[layer]
        .attention()
        .map_or(0, |one| one.num_heads)
}

/// Check the sizes that determine memory allocations.
fn limits_of(spec: &ModelSpec, config: &ExecutorConfig) -> Result<Limits, KernelError> {
    let sizes = [
        ("max_rows", config.max_rows, 1 << 16),
        ("max_batched_tokens", config.max_batched_tokens, 1 << 20),
        (
            "max_model_len",
            config.max_model_len,
            spec.context_length.max(1),
        ),
        // Sizes in bytes are products of it that must not wrap.
        ("block_size", config.block_size, 1 << 16),
    ];
    for (name, value, most) in sizes {
        if value == 0 || value > most {
            return Err(KernelError::config(format!(
                "{name} is {value}; it must be between 1 and {most}."
            )));
        }
    }
    let windows = spec.windows(config.max_model_len).tokens;
    Ok(Limits {
        max_rows: config.max_rows,
        max_batched_tokens: config.max_batched_tokens,
        max_model_len: config.max_model_len,
        num_blocks: config.num_blocks,
        block_size: config.block_size,
        vocab: spec.vocab_size,
        state_slots: if spec.has_states() {
            config.state_slots
        } else {
            0
        },
        window_blocks: if windows > 0 { config.window_blocks } else { 0 },
        window: windows,
    })
}
