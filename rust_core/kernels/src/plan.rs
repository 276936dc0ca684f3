//! Validation of a step's arrays.
//!
//! Everything that the step reads is copied: the step borrows nothing of the caller's memory, which may change while it
//! runs. What the kernels use as an index is checked. The caller's memory must not change while it is copied.
//!
//! Costs one pass over the scheduled tokens, the rows' block tables, the biases and masks, and the tokens of the rows with
//! penalties. Allocates only when the last three are larger than in any earlier step.

use crate::arena::{Buffer, Plain};
use crate::attention::CHUNK;
use crate::error::KernelError;
use crate::sampler::dry::{Breakers, MAX_BREAKER_TAIL};
use crate::sampler::{MAX_LOGPROB_TOKEN_IDS, MAX_TOP_LOGPROBS, SamplingRow};

/// The arrays of a step as the engine passes them; see `StepPlan` in `engine/executors/base.py`.
#[derive(Debug, Clone, Copy)]
pub struct StepInput<'a> {
    pub rows: &'a [i32],
    pub query_start: &'a [i32],
    pub token_ids: &'a [i32],
    pub positions: &'a [i32],
    pub needs_logits: &'a [u8],
    /// `[table rows, max_blocks]`
    pub block_tables: &'a [i32],
    pub max_blocks: usize,
    /// `[table rows, token_stride]`
    pub token_table: &'a [i32],
    pub token_stride: usize,
    pub num_tokens: &'a [i32],
    pub penalty_start: &'a [i32],
    /// `[table rows]` records of [`SamplingRow`], of any alignment.
    pub sampling: &'a [u8],
    pub bias_rows: &'a [i32],
    pub bias_ids: &'a [i32],
    pub bias_values: &'a [f32],
    /// `[L]` each: rows, ascending, and token ids whose logprobs are reported whenever the row samples.
    pub logprob_rows: &'a [i32],
    pub logprob_ids: &'a [i32],
    /// `[P, vocabulary / 32 rounded up]` and `[P, MAX_BREAKER_TAIL]`, of which rows name ranges; see
    /// [`crate::sampler::dry::Breakers`].
    pub breaker_heads: &'a [u32],
    pub breaker_tails: &'a [i32],
    /// `[G]` batch indices, ascending: entries whose next token is restricted by a mask.
    pub mask_rows: &'a [i32],
    /// `[G, vocabulary / 32 rounded up]`; see [`crate::sampler::mask`].
    pub mask_bits: &'a [u32],
    /// `[R]`, or empty: no run ends in drafts.
    pub num_draft_tokens: &'a [i32],
    /// `[P]` each: flat tokens whose next token is known and scored, that token, and the number of top alternatives to
    /// return with it.
    pub score_tokens: &'a [i32],
    pub score_targets: &'a [i32],
    pub score_tops: &'a [i32],
    /// `[table rows]`: slots of the rows' recurrent states; empty for a model without.
    pub state_slots: &'a [i32],
    /// `[blocks]`: for each block, the window block with its keys and values of the layers that keep a window only, or -1;
    /// empty without such layers.
    pub window_blocks: &'a [i32],
}

/// The most drafts of a step, over all its runs; `MAX_DRAFT_TOKENS` in Python.
pub const MAX_DRAFT_TOKENS: usize = 16;

/// Upper bounds of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub max_rows: usize,
    pub max_batched_tokens: usize,
    pub max_model_len: usize,
    pub num_blocks: usize,
    pub block_size: usize,
    pub vocab: usize,
    /// Slots for recurrent states; 0 for a model without.
    pub state_slots: usize,
    /// Blocks of the layers that keep a window only; 0 if all layers keep every token.
    pub window_blocks: usize,
    /// Tokens of the largest of their windows.
    pub window: usize,
}

impl Limits {
    /// Blocks of the longest sequence.
    pub fn max_blocks(&self) -> usize {
        self.max_model_len.div_ceil(self.block_size)
    }
}

/// The scheduled tokens of one row.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Index into the row-indexed arrays.
    pub row: usize,
    /// First flat token.
    pub start: usize,
    pub tokens: usize,
    pub first_position: usize,
    pub needs_logits: bool,
    /// Number of its last tokens that are drafts.
    pub drafts: usize,
    /// Index of its first draft among those of the step.
    pub first_draft: usize,
    /// Index of its first entry in [`Plan::samples`].
    pub first_sample: usize,
    /// Index of its first entry in the plan's biases, and their number.
    bias: (usize, usize),
    /// Index of its first entry in the plan's token ids with logprobs, and their number.
    pub logprob_ids: (usize, usize),
    /// Index of its mask; None: every token is allowed.
    mask: Option<usize>,
    pub sampling: SamplingRow,
    pub num_tokens: usize,
    /// Index of its first token in the plan's penalised tokens, and their number: `num_tokens` and the drafts, or none if the
    /// run has no penalty.
    penalised: (usize, usize),
    /// Tokens from here on count as output for penalties.
    pub penalty_start: usize,
    /// Slot of its recurrent state; 0 for a model without.
    pub state_slot: usize,
}

/// A token to sample: after the run's last known token, or after one of its drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Batch index.
    pub run: u32,
    /// Number of the run's drafts before it.
    pub drafts: u32,
    /// The flat token it follows.
    pub token: u32,
}

/// A known token whose log-probability is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score {
    /// The flat token it follows.
    pub token: u32,
    pub target: u32,
    /// Number of top alternatives to return with it.
    pub top: u32,
}

/// A validated step.
#[derive(Debug)]
pub struct Plan {
    limits: Limits,
    pub runs: Vec<Run>,
    /// `[T]`, batch index of each flat token.
    pub run_of: Vec<u32>,
    pub token_ids: Vec<i32>,
    pub positions: Vec<i32>,
    /// Tokens to sample, run by run.
    pub samples: Vec<Sample>,
    /// Tokens to score, in the caller's order.
    pub scores: Vec<Score>,
    /// Number of drafts of all runs.
    drafts: usize,
    /// Tokens of the runs that have penalties, run by run.
    penalised: Vec<i32>,
    /// Biases of the step, by row.
    bias_ids: Vec<i32>,
    bias_values: Vec<f32>,
    /// Token ids of the step whose logprobs are reported, by row.
    logprob_ids: Vec<i32>,
    /// `[G, vocabulary / 32 rounded up]`
    mask_bits: Vec<u32>,
    /// Sequence breakers of the step, `[P, vocabulary / 32 rounded up]` and `[P, MAX_BREAKER_TAIL]`.
    breaker_heads: Vec<u32>,
    breaker_tails: Vec<i32>,
    /// `[R, max_blocks]`
    tables: Buffer<i32>,
    /// For each block, the step that last wrote it, and the batch index.
    written: Buffer<Mark>,
    /// `[R, max_blocks]`, the window blocks of the blocks in `tables`; empty without any.
    window_tables: Buffer<i32>,
    /// As `written`, for each window block.
    written_windows: Buffer<Mark>,
    /// For each row, the step that last used it.
    used: Vec<u32>,
    /// For each state slot, the step that last used it.
    used_slots: Vec<u32>,
    step: u32,
}

/// The step that last wrote a block, and the batch index.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    step: u32,
    batch: u32,
}

// SAFETY: plain numbers.
unsafe impl Plain for Mark {}

impl Plan {
    /// # Errors
    /// Memory for the block tables of so many rows, or for marks of so many blocks, does not suffice.
    pub fn new(limits: Limits) -> Result<Self, KernelError> {
        let (rows, tokens) = (limits.max_rows, limits.max_batched_tokens);
        let entries = rows.checked_mul(limits.max_blocks()).ok_or_else(|| {
            KernelError::Memory("The block tables would not fit in memory.".to_owned())
        })?;
        Ok(Self {
            limits,
            runs: Vec::with_capacity(rows),
            run_of: Vec::with_capacity(tokens),
            token_ids: Vec::with_capacity(tokens),
            positions: Vec::with_capacity(tokens),
            samples: Vec::with_capacity(rows + MAX_DRAFT_TOKENS),
            scores: Vec::with_capacity(tokens),
            drafts: 0,
            penalised: Vec::new(),
            bias_ids: Vec::new(),
            bias_values: Vec::new(),
            logprob_ids: Vec::new(),
            mask_bits: Vec::new(),
            breaker_heads: Vec::new(),
            breaker_tails: Vec::new(),
            tables: Buffer::new(entries)?,
            written: Buffer::new(limits.num_blocks)?,
            window_tables: Buffer::new(if limits.window_blocks > 0 { entries } else { 0 })?,
            written_windows: Buffer::new(limits.window_blocks)?,
            used: vec![0; rows],
            used_slots: vec![0; limits.state_slots],
            step: 0,
        })
    }

    /// Blocks of a run's sequence; entries up to its last position are valid.
    pub fn block_table(&self, run: usize) -> &[i32] {
        let (tables, width) = self.block_tables();
        &tables[run * width..][..width]
    }

    /// The block tables of all runs, and the number of entries of each.
    pub fn block_tables(&self) -> (&[i32], usize) {
        // SAFETY: written through `&mut self` only.
        let tables = unsafe { self.tables.slice(0, self.tables.len()) };
        (tables, self.limits.max_blocks())
    }

    /// The window blocks of all runs, and the number of entries of each: as [`Self::block_tables`], but an entry before a
    /// run's window is -1 unless another run needs it.
    pub fn window_tables(&self) -> (&[i32], usize) {
        // SAFETY: written through `&mut self` only.
        let tables = unsafe { self.window_tables.slice(0, self.window_tables.len()) };
        (tables, self.limits.max_blocks())
    }

    /// The tokens of a run with penalties, its drafts included; empty if the run has none.
    pub fn penalised_tokens(&self, run: &Run) -> &[i32] {
        let (start, count) = run.penalised;
        &self.penalised[start..start + count]
    }

    /// Ids and values of a run's logit biases.
    pub fn biases(&self, run: &Run) -> (&[i32], &[f32]) {
        let (start, count) = run.bias;
        let range = start..start + count;
        (&self.bias_ids[range.clone()], &self.bias_values[range])
    }

    /// The token ids whose logprobs a run reports.
    pub fn logprob_ids(&self, run: &Run) -> &[i32] {
        let (start, count) = run.logprob_ids;
        &self.logprob_ids[start..start + count]
    }

    /// A run's mask; None: every token is allowed.
    pub fn mask(&self, run: &Run) -> Option<&[u32]> {
        let words = self.limits.vocab.div_ceil(32);
        run.mask
            .map(|mask| &self.mask_bits[mask * words..][..words])
    }

    /// The sequence breakers of a row; none without a DRY penalty.
    pub fn breakers(&self, row: &SamplingRow) -> Breakers<'_> {
        if row.dry_multiplier == 0.0 {
            return Breakers::default();
        }
        let (first, count) = (row.first_breaker as usize, row.num_breakers as usize);
        let words = self.limits.vocab.div_ceil(32);
        Breakers::new(
            &self.breaker_heads[first * words..][..count * words],
            &self.breaker_tails[first * MAX_BREAKER_TAIL..][..count * MAX_BREAKER_TAIL],
            words,
        )
    }

    /// Tokens of a block.
    pub fn block_size(&self) -> usize {
        self.limits.block_size
    }

    /// Check `input` and copy it into this plan.
    pub fn fill(&mut self, input: &StepInput<'_>) -> Result<(), KernelError> {
        self.runs.clear();
        self.run_of.clear();
        self.token_ids.clear();
        self.positions.clear();
        self.samples.clear();
        self.scores.clear();
        self.drafts = 0;
        self.penalised.clear();
        self.bias_ids.clear();
        self.bias_values.clear();
        self.logprob_ids.clear();
        self.mask_bits.clear();
        self.breaker_heads.clear();
        self.breaker_tails.clear();
        self.step = self.step.wrapping_add(1);
        if self.step == 0 {
            for marks in [&mut self.written, &mut self.written_windows] {
                marks.as_mut_slice().fill(Mark { step: 0, batch: 0 });
            }
            self.used.fill(0);
            self.used_slots.fill(0);
            self.step = 1;
        }
        self.check_shapes(input)?;
        for batch in 0..input.rows.len() {
            self.add_run(input, batch)?;
        }
        self.check_sharing()?;
        self.add_scores(input)?;
        self.add_biases(input)?;
        self.add_logprob_ids(input)?;
        self.add_masks(input)
    }

    fn check_shapes(&self, input: &StepInput<'_>) -> Result<(), KernelError> {
        let (count, total) = (input.rows.len(), input.token_ids.len());
        let limits = &self.limits;
        if count > limits.max_rows || total > limits.max_batched_tokens {
            return Err(KernelError::step(format!(
                "A step of {count} rows and {total} tokens exceeds this executor's limits of {} rows and {} tokens.",
                limits.max_rows, limits.max_batched_tokens
            )));
        }
        let table_rows = input.num_tokens.len();
        let consistent = input.query_start.len() == count + 1
            && input.positions.len() == total
            && input.needs_logits.len() == count
            && input.query_start[0] == 0
            && input.query_start[count] as i64 == total as i64
            && table_rows <= limits.max_rows
            && input.penalty_start.len() == table_rows
            && input.block_tables.len() == table_rows * input.max_blocks
            && input.token_table.len() == table_rows * input.token_stride
            && input.sampling.len() == table_rows * size_of::<SamplingRow>()
            && input.bias_rows.len() == input.bias_ids.len()
            && input.bias_rows.len() == input.bias_values.len()
            && input.logprob_rows.len() == input.logprob_ids.len()
            && input.logprob_rows.len() <= limits.max_rows * MAX_LOGPROB_TOKEN_IDS
            && input.breaker_heads.len() * MAX_BREAKER_TAIL
                == input.breaker_tails.len() * limits.vocab.div_ceil(32)
            && input.mask_bits.len() == input.mask_rows.len() * limits.vocab.div_ceil(32)
            && (input.num_draft_tokens.is_empty() || input.num_draft_tokens.len() == count)
            && input.score_tokens.len() <= total
            && input.score_tokens.len() == input.score_targets.len()
            && input.score_tokens.len() == input.score_tops.len()
            && input.state_slots.len()
                == if limits.state_slots > 0 {
                    table_rows
                } else {
                    0
                }
            && input.window_blocks.len()
                == if limits.window_blocks > 0 {
                    limits.num_blocks
                } else {
                    0
                };
        if !consistent {
            return Err(KernelError::step(
                "The step's arrays have lengths that contradict each other.",
            ));
        }
        Ok(())
    }

    fn add_run(&mut self, input: &StepInput<'_>, batch: usize) -> Result<(), KernelError> {
        let limits = self.limits;
        let refuse = |what: String| Err(KernelError::step_entry(batch, what));
        let row = input.rows[batch] as usize;
        if input.rows[batch] < 0 || row >= input.num_tokens.len() {
            return refuse(format!(
                "names row {}, which does not exist",
                input.rows[batch]
            ));
        }
        if std::mem::replace(&mut self.used[row], self.step) == self.step {
            return refuse(format!("names row {row} a second time"));
        }
        let (start, end) = (input.query_start[batch], input.query_start[batch + 1]);
        if start < 0 || end <= start || end as usize > input.token_ids.len() {
            return refuse(format!(
                "covers tokens {start} to {end}, which is not a valid range"
            ));
        }
        let (start, end) = (start as usize, end as usize);
        let positions = &input.positions[start..end];
        let first = positions[0];
        let consecutive = positions
            .iter()
            .enumerate()
            .all(|(i, &p)| i64::from(p) == i64::from(first) + i as i64);
        let last = i64::from(first) + (end - start) as i64 - 1;
        if first < 0 || !consecutive || last >= limits.max_model_len as i64 {
            return refuse(format!(
                "has positions from {first} to {last}, which must be consecutive and below {}",
                limits.max_model_len
            ));
        }
        let (first, last) = (first as usize, last as usize);
        if let Some(id) = input.token_ids[start..end]
            .iter()
            .find(|&&id| id < 0 || id as usize >= limits.vocab)
        {
            return refuse(format!(
                "holds token id {id}, beyond the vocabulary of {}",
                limits.vocab
            ));
        }
        let blocks = last / limits.block_size + 1;
        if blocks > input.max_blocks {
            return refuse(format!(
                "needs {blocks} blocks, but its table has room for {}",
                input.max_blocks
            ));
        }
        let table = &input.block_tables[row * input.max_blocks..][..blocks];
        if let Some(block) = table
            .iter()
            .find(|&&b| b < 0 || b as usize >= limits.num_blocks)
        {
            return refuse(format!("uses block {block}, which does not exist"));
        }
        self.tables.as_mut_slice()[batch * limits.max_blocks()..][..blocks].copy_from_slice(table);
        let written = self.written.as_mut_slice();
        for &block in &table[first / limits.block_size..] {
            let mark = Mark {
                step: self.step,
                batch: batch as u32,
            };
            let before = std::mem::replace(&mut written[block as usize], mark);
            if before.step == self.step {
                return refuse(format!(
                    "writes block {block}, which is written twice in this step"
                ));
            }
        }
        if limits.window_blocks > 0 {
            self.add_window_blocks(input, batch, first, table)?;
        }
        let state_slot = self.take_slot(input, batch, row)?;
        let needs_logits = input.needs_logits[batch] != 0;
        let drafts = input.num_draft_tokens.get(batch).copied().unwrap_or(0);
        let first_draft = self.drafts;
        let most = if needs_logits { end - start - 1 } else { 0 };
        if drafts < 0 || drafts as usize > most.min(MAX_DRAFT_TOKENS - first_draft) {
            return refuse(format!(
                "ends in {drafts} drafts; its {} tokens allow {most}, and a step {MAX_DRAFT_TOKENS}",
                end - start
            ));
        }
        let mut run = Run {
            row,
            start,
            tokens: end - start,
            first_position: first,
            needs_logits,
            drafts: drafts as usize,
            first_draft,
            first_sample: self.samples.len(),
            bias: (0, 0),
            logprob_ids: (0, 0),
            mask: None,
            sampling: sampling_row(input.sampling, row),
            num_tokens: input.num_tokens[row].max(0) as usize,
            penalised: (0, 0),
            penalty_start: input.penalty_start[row].max(0) as usize,
            state_slot,
        };
        if run.needs_logits {
            self.check_sampling(input, batch, &mut run, last)?;
            let first = end - 1 - run.drafts;
            self.samples.extend((0..=run.drafts).map(|drafts| Sample {
                run: batch as u32,
                drafts: drafts as u32,
                token: (first + drafts) as u32,
            }));
        }
        self.drafts += run.drafts;
        self.runs.push(run);
        self.run_of.resize(end, batch as u32);
        self.token_ids
            .extend_from_slice(&input.token_ids[start..end]);
        self.positions.extend_from_slice(positions);
        Ok(())
    }

    /// Look up the window blocks of a run that begins at position `first`, of whose blocks `table` are the ones up to its
    /// last position. Those that hold what it sees or writes must exist.
    fn add_window_blocks(
        &mut self,
        input: &StepInput<'_>,
        batch: usize,
        first: usize,
        table: &[i32],
    ) -> Result<(), KernelError> {
        let Limits {
            block_size,
            window_blocks,
            window,
            ..
        } = self.limits;
        let refuse = |what: String| Err(KernelError::step_entry(batch, what));
        // Whole chunks are read.
        let seen = (first + 1).saturating_sub(window) / CHUNK * CHUNK / block_size;
        let width = self.limits.max_blocks();
        let entries = &mut self.window_tables.as_mut_slice()[batch * width..][..table.len()];
        let written = self.written_windows.as_mut_slice();
        for (at, (entry, &block)) in entries.iter_mut().zip(table).enumerate() {
            let own = input.window_blocks[block as usize];
            *entry = own;
            if at < seen && own == -1 {
                continue;
            }
            let Some(mark) = usize::try_from(own)
                .ok()
                .and_then(|own| written.get_mut(own))
            else {
                return refuse(format!(
                    "needs the window block of block {block}, which is {own}, of {window_blocks}"
                ));
            };
            if at >= first / block_size {
                let new = Mark {
                    step: self.step,
                    batch: batch as u32,
                };
                if std::mem::replace(mark, new).step == self.step {
                    return refuse(format!(
                        "writes window block {own}, which is written twice in this step"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The slot of a row's recurrent state, which no other run of the step has; 0 for a model without.
    fn take_slot(
        &mut self,
        input: &StepInput<'_>,
        batch: usize,
        row: usize,
    ) -> Result<usize, KernelError> {
        let Some(&slot) = input.state_slots.get(row) else {
            return Ok(0);
        };
        let refuse = |what: String| Err(KernelError::step_entry(batch, what));
        let known = usize::try_from(slot).ok();
        let Some(used) = known.and_then(|slot| self.used_slots.get_mut(slot)) else {
            return refuse(format!(
                "has state slot {slot}, of {}",
                self.limits.state_slots
            ));
        };
        if *used == self.step {
            return refuse(format!("has state slot {slot}, which another entry has"));
        }
        *used = self.step;
        Ok(slot as usize)
    }

    /// Check a run's sampling parameters, and copy its tokens if it has penalties.
    fn check_sampling(
        &mut self,
        input: &StepInput<'_>,
        batch: usize,
        run: &mut Run,
        last: usize,
    ) -> Result<(), KernelError> {
        let refuse = |what: String| Err(KernelError::step_entry(batch, what));
        let known = run.num_tokens + run.drafts;
        if known != last + 1 || known > input.token_stride {
            return refuse(format!(
                "needs logits at position {last}, but its row has {} tokens and {} drafts",
                run.num_tokens, run.drafts
            ));
        }
        let p = &run.sampling;
        if !p.is_sane(input.breaker_tails.len()) {
            return refuse(format!("has sampling parameters out of range ({p:?})"));
        }
        if p.reads_tokens() {
            let known = &input.token_table[run.row * input.token_stride..][..known];
            if let Some(id) = known
                .iter()
                .find(|&&id| id < 0 || id as usize >= self.limits.vocab)
            {
                return refuse(format!(
                    "has token id {id} in its table, beyond the vocabulary"
                ));
            }
            run.penalised = (self.penalised.len(), known.len());
            self.penalised.extend_from_slice(known);
        }
        Ok(())
    }

    /// Check that no row reads a block that another writes: their workers run at the same time.
    fn check_sharing(&self) -> Result<(), KernelError> {
        // SAFETY: written through `&mut self` only.
        let written = unsafe { self.written.slice(0, self.written.len()) };
        for (batch, run) in self.runs.iter().enumerate() {
            let before = run.first_position / self.limits.block_size;
            for &block in &self.block_table(batch)[..before] {
                let Mark {
                    step,
                    batch: writer,
                } = written[block as usize];
                if step == self.step && writer != batch as u32 {
                    return Err(KernelError::step_entry(
                        batch,
                        format!("reads block {block}, which entry {writer} writes"),
                    ));
                }
            }
        }
        if self.limits.window_blocks > 0 {
            self.check_window_sharing()?;
        }
        Ok(())
    }

    /// As [`Self::check_sharing`], for window blocks.
    fn check_window_sharing(&self) -> Result<(), KernelError> {
        let (tables, width) = self.window_tables();
        // SAFETY: written through `&mut self` only.
        let written = unsafe { self.written_windows.slice(0, self.limits.window_blocks) };
        for (batch, run) in self.runs.iter().enumerate() {
            let before = run.first_position / self.limits.block_size;
            let read = tables[batch * width..][..before].iter();
            for mark in read.filter_map(|&own| written.get(usize::try_from(own).ok()?)) {
                if mark.step == self.step && mark.batch != batch as u32 {
                    return Err(KernelError::step_entry(
                        batch,
                        format!("reads a window block that entry {} writes", mark.batch),
                    ));
                }
            }
        }
        Ok(())
    }

    fn add_scores(&mut self, input: &StepInput<'_>) -> Result<(), KernelError> {
        let Limits { vocab, .. } = self.limits;
        let entries = input.score_tokens.iter().zip(input.score_targets);
        for ((&token, &target), &top) in entries.zip(input.score_tops) {
            let sane = (0..input.token_ids.len() as i64).contains(&i64::from(token))
                && (0..vocab as i64).contains(&i64::from(target))
                && (0..=MAX_TOP_LOGPROBS as i32).contains(&top);
            if !sane {
                return Err(KernelError::step(format!(
                    "The step scores token id {target} with {top} alternatives after its token \
                     {token}, which is out of range."
                )));
            }
            self.scores.push(Score {
                token: token as u32,
                target: target as u32,
                top: top as u32,
            });
        }
        Ok(())
    }

    fn add_biases(&mut self, input: &StepInput<'_>) -> Result<(), KernelError> {
        if input.bias_rows.is_empty() {
            return Ok(());
        }
        if !input.bias_rows.is_sorted() {
            return Err(KernelError::step(
                "The step's logit biases are not sorted by row.",
            ));
        }
        if let Some(id) = input
            .bias_ids
            .iter()
            .find(|&&id| id < 0 || id as usize >= self.limits.vocab)
        {
            return Err(KernelError::step(format!(
                "A logit bias names token id {id}, beyond the vocabulary of {}.",
                self.limits.vocab
            )));
        }
        self.bias_ids.extend_from_slice(input.bias_ids);
        self.bias_values.extend_from_slice(input.bias_values);
        for run in &mut self.runs {
            run.bias = entries_of(input.bias_rows, run.row);
        }
        Ok(())
    }

    fn add_logprob_ids(&mut self, input: &StepInput<'_>) -> Result<(), KernelError> {
        if input.logprob_rows.is_empty() {
            return Ok(());
        }
        if !input.logprob_rows.is_sorted() {
            return Err(KernelError::step(
                "The step's token ids with logprobs are not sorted by row.",
            ));
        }
        if let Some(id) = input
            .logprob_ids
            .iter()
            .find(|&&id| id < 0 || id as usize >= self.limits.vocab)
        {
            return Err(KernelError::step(format!(
                "A logprob is requested of token id {id}, beyond the vocabulary of {}.",
                self.limits.vocab
            )));
        }
        self.logprob_ids.extend_from_slice(input.logprob_ids);
        for (batch, run) in self.runs.iter_mut().enumerate() {
            run.logprob_ids = entries_of(input.logprob_rows, run.row);
            if run.logprob_ids.1 > 0 && run.drafts > 0 {
                return Err(KernelError::step_entry(
                    batch,
                    "requests logprobs of token ids and ends in drafts".to_owned(),
                ));
            }
        }
        Ok(())
    }

    fn add_masks(&mut self, input: &StepInput<'_>) -> Result<(), KernelError> {
        self.mask_bits.extend_from_slice(input.mask_bits);
        self.breaker_heads.extend_from_slice(input.breaker_heads);
        self.breaker_tails.extend_from_slice(input.breaker_tails);
        let mut next = 0;
        for (mask, &batch) in input.mask_rows.iter().enumerate() {
            let run = usize::try_from(batch)
                .ok()
                .filter(|&batch| batch >= next)
                .and_then(|batch| self.runs.get_mut(batch));
            let Some(run) = run else {
                return Err(KernelError::step(format!(
                    "Token mask {mask} is for step entry {batch}, which does not exist or is out \
                     of order."
                )));
            };
            if run.drafts > 0 {
                return Err(KernelError::step(format!(
                    "Token mask {mask} is for step entry {batch}, which ends in drafts."
                )));
            }
            run.mask = Some(mask);
            next = batch as usize + 1;
        }
        Ok(())
    }
}

/// Index of the first entry of a row in ascending `rows`, and the number of its entries.
fn entries_of(rows: &[i32], row: usize) -> (usize, usize) {
    let row = row as i32;
    let start = rows.partition_point(|&one| one < row);
    (start, rows.partition_point(|&one| one <= row) - start)
}

fn sampling_row(records: &[u8], row: usize) -> SamplingRow {
    let record = &records[row * size_of::<SamplingRow>()..][..size_of::<SamplingRow>()];
    SamplingRow::read(record).expect("a record of this size")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const GREEDY: SamplingRow = SamplingRow {
        temperature: 0.0,
        top_p: 1.0,
        min_p: 0.0,
        repetition_penalty: 1.0,
        presence_penalty: 0.0,
        frequency_penalty: 0.0,
        dry_multiplier: 0.0,
        dry_base: 1.75,
        dry_allowed_length: 2,
        dry_penalty_last_n: -1,
        first_breaker: 0,
        num_breakers: 0,
        top_k: 0,
        num_logprobs: -1,
        seed: 0,
    };

    /// A step without logits: first position, tokens and block table of each run.
    pub(crate) fn plan_of_runs(
        limits: Limits,
        runs: &[(usize, usize, &[i32])],
    ) -> Result<Plan, KernelError> {
        let width = limits.max_blocks();
        let (mut query_start, mut positions) = (vec![0], Vec::new());
        let mut tables = vec![-1; runs.len() * width];
        for (row, &(first, tokens, table)) in runs.iter().enumerate() {
            positions.extend(first as i32..(first + tokens) as i32);
            query_start.push(positions.len() as i32);
            let count = table.len().min(width);
            tables[row * width..][..count].copy_from_slice(&table[..count]);
        }
        let count = runs.len();
        let mut plan = Plan::new(limits)?;
        plan.fill(&StepInput {
            rows: &(0..count as i32).collect::<Vec<_>>(),
            query_start: &query_start,
            token_ids: &vec![0; positions.len()],
            positions: &positions,
            needs_logits: &vec![0; count],
            block_tables: &tables,
            max_blocks: width,
            token_table: &vec![0; count],
            token_stride: 1,
            num_tokens: &vec![0; count],
            penalty_start: &vec![0; count],
            sampling: &vec![0; count * size_of::<SamplingRow>()],
            bias_rows: &[],
            bias_ids: &[],
            bias_values: &[],
            logprob_rows: &[],
            logprob_ids: &[],
            breaker_heads: &[],
            breaker_tails: &[],
            mask_rows: &[],
            mask_bits: &[],
            num_draft_tokens: &[],
            score_tokens: &[],
            score_targets: &[],
            score_tops: &[],
            state_slots: &(0..if limits.state_slots > 0 {
                count as i32
            } else {
                0
            })
                .collect::<Vec<_>>(),
            window_blocks: &[],
        })?;
        Ok(plan)
    }

    const LIMITS: Limits = Limits {
        max_rows: 4,
        max_batched_tokens: 16,
        max_model_len: 64,
        num_blocks: 8,
        block_size: 16,
        vocab: 100,
        state_slots: 4,
        window_blocks: 0,
        window: 0,
    };

    #[derive(Clone)]
    struct Arrays {
        rows: Vec<i32>,
        query_start: Vec<i32>,
        token_ids: Vec<i32>,
        positions: Vec<i32>,
        needs_logits: Vec<u8>,
        block_tables: Vec<i32>,
        token_table: Vec<i32>,
        num_tokens: Vec<i32>,
        sampling: Vec<SamplingRow>,
        bias: (Vec<i32>, Vec<i32>),
        logprob_ids: (Vec<i32>, Vec<i32>),
        masks: (Vec<i32>, Vec<u32>),
        drafts: Vec<i32>,
        scores: Vec<(i32, i32, i32)>,
        state_slots: Vec<i32>,
        window_blocks: Vec<i32>,
    }

    /// Row 2 prefills positions 14–17; row 0 decodes position 20.
    fn sound() -> Arrays {
        Arrays {
            rows: vec![2, 0],
            query_start: vec![0, 4, 5],
            token_ids: vec![5, 6, 7, 8, 9],
            positions: vec![14, 15, 16, 17, 20],
            needs_logits: vec![0, 1],
            block_tables: vec![1, 2, -1, -1, -1, -1, -1, -1, 3, 4, -1, -1, -1, -1, -1, -1],
            token_table: vec![1; 4 * 64],
            num_tokens: vec![21, 0, 40, 0],
            sampling: vec![GREEDY; 4],
            bias: (vec![], vec![]),
            logprob_ids: (vec![], vec![]),
            masks: (vec![], vec![]),
            drafts: vec![],
            scores: vec![],
            state_slots: vec![3, -1, 0, -1],
            window_blocks: vec![],
        }
    }

    /// A window of four tokens, whose chunks are four blocks; for blocks 1 to 4 of [`sound`] there are window blocks.
    fn fill_windowed(change: impl FnOnce(&mut Vec<i32>)) -> Result<Plan, KernelError> {
        let mut plan = Plan::new(Limits {
            window_blocks: 5,
            window: 4,
            ..LIMITS
        })?;
        refill(&mut plan, |arrays| {
            arrays.window_blocks = vec![-1, 4, 3, 1, 0, -1, -1, -1];
            change(&mut arrays.window_blocks);
        })?;
        Ok(plan)
    }

    #[test]
    fn window_blocks_are_looked_up_for_each_run() {
        let plan = fill_windowed(|_| {}).unwrap();
        let (tables, width) = plan.window_tables();
        assert_eq!(
            (&tables[..2], &tables[width..][..2]),
            (&[1, 0][..], &[4, 3][..])
        );
        let refused = |change: fn(&mut Vec<i32>)| fill_windowed(change).unwrap_err().to_string();
        assert!(refused(|blocks| blocks[1] = -1).contains("block 1, which is -1, of 5"));
        assert!(refused(|blocks| blocks[2] = 5).contains("block 2, which is 5"));
        assert!(refused(|blocks| blocks[4] = 1).contains("window block 1, which is written twice"));
        assert!(refused(|blocks| blocks[1] = 1).contains("window block that entry 0 writes"));
        assert!(refused(Vec::clear).contains("contradict"));
    }

    #[test]
    fn window_blocks_before_the_first_visible_chunk_may_be_gone() {
        let long = Limits {
            max_model_len: 128,
            window_blocks: 1,
            window: 4,
            ..LIMITS
        };
        let window_blocks = [-1, -1, -1, -1, 0, -1, -1, -1];
        let fill = |first: i32| {
            let mut plan = Plan::new(long)?;
            let tables = [0, 1, 2, 3, 4, -1, -1, -1];
            plan.fill(&StepInput {
                rows: &[0],
                query_start: &[0, 1],
                token_ids: &[0],
                positions: &[first],
                needs_logits: &[0],
                block_tables: &tables,
                max_blocks: 8,
                token_table: &[0],
                token_stride: 1,
                num_tokens: &[0],
                penalty_start: &[0],
                sampling: &[0; size_of::<SamplingRow>()],
                bias_rows: &[],
                bias_ids: &[],
                bias_values: &[],
                logprob_rows: &[],
                logprob_ids: &[],
                breaker_heads: &[],
                breaker_tails: &[],
                mask_rows: &[],
                mask_bits: &[],
                num_draft_tokens: &[],
                score_tokens: &[],
                score_targets: &[],
                score_tops: &[],
                state_slots: &[0],
                window_blocks: &window_blocks,
            })?;
            Ok::<_, KernelError>(plan)
        };
        // At position 67 the token sees positions 64 to 67; at 66 also 63.
        let plan = fill(67).unwrap();
        assert_eq!(plan.window_tables().0[..5], [-1, -1, -1, -1, 0]);
        assert!(fill(66).is_err());
    }

    #[test]
    fn runs_have_state_slots_of_their_own() {
        let slots = |plan: Plan| {
            plan.runs
                .iter()
                .map(|run| run.state_slot)
                .collect::<Vec<_>>()
        };
        assert_eq!(slots(fill(|_| {}).unwrap()), [0, 3]);
        let refused = |change: fn(&mut Vec<i32>)| {
            let plan = fill(|arrays| change(&mut arrays.state_slots));
            plan.unwrap_err().to_string()
        };
        assert!(refused(|slots| slots[0] = 0).contains("state slot 0, which another"));
        assert!(refused(|slots| slots[2] = 4).contains("state slot 4, of 4"));
        assert!(refused(|slots| slots[2] = -1).contains("state slot -1"));
        assert!(refused(Vec::clear).contains("contradict"));
    }

    fn fill(change: impl FnOnce(&mut Arrays)) -> Result<Plan, KernelError> {
        let mut plan = Plan::new(LIMITS)?;
        refill(&mut plan, change)?;
        Ok(plan)
    }

    fn refill(plan: &mut Plan, change: impl FnOnce(&mut Arrays)) -> Result<(), KernelError> {
        let mut arrays = sound();
        change(&mut arrays);
        let values = vec![1.0; arrays.bias.1.len()];
        let part = |pick: fn(&(i32, i32, i32)) -> i32| arrays.scores.iter().map(pick).collect();
        let (score_tokens, score_targets): (Vec<_>, Vec<_>) = (part(|s| s.0), part(|s| s.1));
        let score_tops: Vec<i32> = part(|s| s.2);
        // SAFETY: plain numbers seen as bytes.
        let sampling = unsafe {
            std::slice::from_raw_parts(
                arrays.sampling.as_ptr().cast(),
                4 * size_of::<SamplingRow>(),
            )
        };
        plan.fill(&StepInput {
            rows: &arrays.rows,
            query_start: &arrays.query_start,
            token_ids: &arrays.token_ids,
            positions: &arrays.positions,
            needs_logits: &arrays.needs_logits,
            block_tables: &arrays.block_tables,
            max_blocks: 4,
            token_table: &arrays.token_table,
            token_stride: 64,
            num_tokens: &arrays.num_tokens,
            penalty_start: &[1; 4],
            sampling,
            bias_rows: &arrays.bias.0,
            bias_ids: &arrays.bias.1,
            bias_values: &values,
            logprob_rows: &arrays.logprob_ids.0,
            logprob_ids: &arrays.logprob_ids.1,
            breaker_heads: &[],
            breaker_tails: &[],
            mask_rows: &arrays.masks.0,
            mask_bits: &arrays.masks.1,
            num_draft_tokens: &arrays.drafts,
            score_tokens: &score_tokens,
            score_targets: &score_targets,
            score_tops: &score_tops,
            state_slots: &arrays.state_slots,
            window_blocks: &arrays.window_blocks,
        })
    }

    #[test]
    fn a_sound_step_is_taken_over() {
        let plan = fill(|a| a.bias = (vec![0, 0, 1], vec![7, 8, 9])).unwrap();
        assert_eq!(plan.run_of, [0, 0, 0, 0, 1]);
        let sample = |drafts, token| Sample {
            run: 1,
            drafts,
            token,
        };
        assert_eq!(plan.samples, [sample(0, 4)]);
        assert_eq!(plan.runs[1].bias, (0, 2));
        assert_eq!(plan.block_table(0)[..2], [3, 4]);
        let plan = fill(|a| a.masks = (vec![1], vec![5; 4])).unwrap();
        let masks = [0, 1].map(|run| plan.mask(&plan.runs[run]));
        assert_eq!(masks, [None, Some(&[5; 4][..])]);
    }

    #[test]
    fn tokens_biases_and_masks_are_the_plans_own() {
        let mut plan = Plan::new(LIMITS).unwrap();
        // Twice, so that nothing is left of the first step. `fill` drops the arrays before the plan is read.
        for bias in [9, 8] {
            refill(&mut plan, |a| {
                a.bias = (vec![0, 0, 2], vec![7, bias, 3]);
                a.logprob_ids = (vec![0, 0, 0, 1, 2], vec![bias, 99, 0, 5, 6]);
                a.masks = (vec![1], vec![bias as u32; 4]);
                a.sampling[0].repetition_penalty = 1.5;
                a.token_table[..21].fill(bias);
            })
            .unwrap();
            let [other, row_0] = [0, 1].map(|run| &plan.runs[run]);
            assert_eq!(plan.penalised_tokens(row_0), [bias; 21]);
            assert_eq!(plan.biases(row_0), (&[7, bias][..], &[1.0; 2][..]));
            assert_eq!(plan.logprob_ids(row_0), [bias, 99, 0]);
            assert_eq!(plan.logprob_ids(other), [6]);
            assert_eq!((row_0.logprob_ids.0, other.logprob_ids.0), (0, 4));
            assert_eq!(plan.mask(row_0), Some(&[bias as u32; 4][..]));
            assert_eq!(plan.penalised_tokens(other), [0; 0]);
            assert_eq!(plan.biases(other), (&[3][..], &[1.0][..]));
        }
        refill(&mut plan, |_| {}).unwrap();
        assert_eq!(plan.biases(&plan.runs[1]), (&[][..], &[][..]));
        assert_eq!(plan.logprob_ids(&plan.runs[1]), [0; 0]);
    }

    #[test]
    fn drafts_and_scores_are_taken_over() {
        // Row 0 ends in its known token 18 and two drafts.
        let plan = fill(|a| {
            a.num_tokens[0] = 19;
            a.query_start = vec![0, 2, 5];
            a.positions = vec![14, 15, 18, 19, 20];
            a.drafts = vec![0, 2];
            a.scores = vec![(0, 7, 0), (1, 99, 20)];
        })
        .unwrap();
        let tokens: Vec<_> = plan
            .samples
            .iter()
            .map(|s| (s.run, s.drafts, s.token))
            .collect();
        assert_eq!(tokens, [(1, 0, 2), (1, 1, 3), (1, 2, 4)]);
        let run = plan.runs[1];
        assert_eq!((run.drafts, run.first_draft, run.first_sample), (2, 0, 0));
        let score = |token, target, top| Score { token, target, top };
        assert_eq!(plan.scores, [score(0, 7, 0), score(1, 99, 20)]);
    }

    #[test]
    fn every_contradiction_is_refused_with_a_sentence() {
        type Change = Box<dyn FnOnce(&mut Arrays)>;
        let refusals: Vec<(&str, Change)> = vec![
            ("does not exist", Box::new(|a| a.rows[0] = 4)),
            ("does not exist", Box::new(|a| a.rows[0] = -1)),
            ("second time", Box::new(|a| a.rows[0] = 0)),
            ("not a valid range", Box::new(|a| a.query_start[1] = 0)),
            ("not a valid range", Box::new(|a| a.query_start[1] = 99)),
            ("lengths", Box::new(|a| a.query_start[2] = 4)),
            ("lengths", Box::new(|a| a.positions.truncate(3))),
            ("lengths", Box::new(|a| a.token_table.truncate(100))),
            ("consecutive", Box::new(|a| a.positions[1] = 3)),
            ("consecutive", Box::new(|a| a.positions[4] = 64)),
            ("consecutive", Box::new(|a| a.positions[4] = -1)),
            ("beyond the vocabulary", Box::new(|a| a.token_ids[2] = 100)),
            ("beyond the vocabulary", Box::new(|a| a.token_ids[2] = -1)),
            ("uses block", Box::new(|a| a.block_tables[0] = 8)),
            ("uses block", Box::new(|a| a.block_tables[9] = -1)),
            ("written twice", Box::new(|a| a.block_tables[1] = 4)),
            ("which entry 0 writes", Box::new(|a| a.block_tables[0] = 4)),
            ("has 22 tokens", Box::new(|a| a.num_tokens[0] = 22)),
            (
                "out of range",
                Box::new(|a| a.sampling[0].temperature = f32::NAN),
            ),
            (
                "out of range",
                Box::new(|a| a.sampling[0].num_logprobs = 21),
            ),
            (
                "out of range",
                Box::new(|a| {
                    a.sampling[0].dry_multiplier = 1.0;
                    a.sampling[0].num_breakers = 1;
                }),
            ),
            (
                "in its table",
                Box::new(|a| {
                    a.sampling[0].dry_multiplier = 1.0;
                    a.token_table[3] = -1;
                }),
            ),
            (
                "in its table",
                Box::new(|a| {
                    a.sampling[0].presence_penalty = 1.0;
                    a.token_table[3] = 1000;
                }),
            ),
            (
                "not sorted",
                Box::new(|a| a.bias = (vec![1, 0], vec![1, 1])),
            ),
            ("lengths", Box::new(|a| a.masks = (vec![1], vec![0; 3]))),
            ("mask 0", Box::new(|a| a.masks = (vec![2], vec![0; 4]))),
            ("mask 0", Box::new(|a| a.masks = (vec![-1], vec![0; 4]))),
            (
                "out of order",
                Box::new(|a| a.masks = (vec![1, 0], vec![0; 8])),
            ),
            (
                "out of order",
                Box::new(|a| a.masks = (vec![1, 1], vec![0; 8])),
            ),
            (
                "ends in drafts",
                Box::new(|a| {
                    a.num_tokens[0] = 20;
                    a.query_start = vec![0, 3, 5];
                    a.positions = vec![14, 15, 16, 19, 20];
                    a.drafts = vec![0, 1];
                    a.masks = (vec![1], vec![0; 4]);
                }),
            ),
            ("logit bias", Box::new(|a| a.bias = (vec![0], vec![100]))),
            (
                "with logprobs are not sorted",
                Box::new(|a| a.logprob_ids = (vec![1, 0], vec![1, 1])),
            ),
            (
                "requested of token id 100",
                Box::new(|a| a.logprob_ids = (vec![0], vec![100])),
            ),
            (
                "requested of token id -1",
                Box::new(|a| a.logprob_ids = (vec![0], vec![-1])),
            ),
            (
                "lengths",
                Box::new(|a| a.logprob_ids = (vec![0], vec![1, 2])),
            ),
            (
                "lengths",
                Box::new(|a| {
                    let most = LIMITS.max_rows * MAX_LOGPROB_TOKEN_IDS;
                    a.logprob_ids = (vec![0; most + 1], vec![1; most + 1]);
                }),
            ),
            (
                "logprobs of token ids and ends in drafts",
                Box::new(|a| {
                    a.num_tokens[0] = 20;
                    a.query_start = vec![0, 3, 5];
                    a.positions = vec![14, 15, 16, 19, 20];
                    a.drafts = vec![0, 1];
                    a.logprob_ids = (vec![0], vec![1]);
                }),
            ),
            ("lengths", Box::new(|a| a.drafts = vec![0])),
            ("ends in 1 drafts", Box::new(|a| a.drafts = vec![0, 1])),
            ("ends in 1 drafts", Box::new(|a| a.drafts = vec![1, 0])),
            ("ends in -1 drafts", Box::new(|a| a.drafts = vec![0, -1])),
            ("out of range", Box::new(|a| a.scores = vec![(5, 0, 0)])),
            ("out of range", Box::new(|a| a.scores = vec![(0, 100, 0)])),
            ("out of range", Box::new(|a| a.scores = vec![(0, 0, 21)])),
            (
                "exceeds this executor's limits",
                Box::new(|a| {
                    a.token_ids = vec![0; 17];
                    a.positions = (0..17).collect();
                }),
            ),
        ];
        for (expected, change) in refusals {
            let message = fill(change).expect_err(expected).to_string();
            assert!(
                message.contains(expected) && message.ends_with('.'),
                "{expected}: {message}"
            );
        }
    }

    #[test]
    fn rows_may_share_blocks_that_are_not_written() {
        fill(|a| a.block_tables[0] = 7).unwrap();
        fill(|a| {
            (a.positions, a.token_ids) = (vec![16, 17, 18, 19, 20], vec![0; 5]);
            (a.block_tables[0], a.block_tables[8]) = (5, 5);
        })
        .unwrap();
    }
}
