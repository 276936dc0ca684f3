//! [`RowSampler`]: samples and scores single rows, for executors that compute their logits elsewhere.
//!
//! Everything is checked before anything is read, so its callers need no promise. One row at a time, on the
//! calling thread; nothing is allocated after construction, except for rows longer than all before.

use super::dry::{Breakers, MAX_BREAKER_TAIL};
use super::{
    MAX_TOP_LOGPROBS, RowContext, Sampled, SamplingRow, Scored, Scratch, sample, score,
    token_id_logprobs,
};
use crate::dispatch::Level;
use crate::error::KernelError;

/// What decides a row's next token beside its logits; see [`RowContext`].
#[derive(Debug, Clone, Copy)]
pub struct RowInput<'a> {
    /// A record of `SAMPLING_DTYPE`.
    pub params: &'a [u8],
    pub tokens: &'a [i32],
    pub penalty_start: usize,
    pub bias_ids: &'a [i32],
    pub bias_values: &'a [f32],
    /// `[patterns, words]` and `[patterns, MAX_BREAKER_TAIL]`, those of the whole step.
    pub breaker_heads: &'a [u32],
    pub breaker_tails: &'a [i32],
    pub mask: Option<&'a [u32]>,
}

/// Scratch memory and instruction-set level for rows of one vocabulary.
#[derive(Debug)]
pub struct RowSampler {
    level: Level,
    vocab: usize,
    max_tokens: usize,
    scratch: Scratch,
}

impl RowSampler {
    /// For a vocabulary of `vocab` tokens.
    pub fn new(vocab: usize) -> Self {
        Self {
            level: Level::best(),
            vocab,
            max_tokens: 0,
            scratch: Scratch::new(vocab, 0),
        }
    }

    /// Sample the token after `input.tokens`; see [`sample`]. `logits` are modified.
    pub fn sample(
        &mut self,
        logits: &mut [f32],
        input: &RowInput<'_>,
        top_ids: &mut [i32],
        top_logprobs: &mut [f32],
    ) -> Result<Sampled, KernelError> {
        self.check_logits(logits)?;
        check_alternatives(top_ids, top_logprobs)?;
        let params = SamplingRow::read(input.params).ok_or_else(|| {
            KernelError::step("A record of sampling parameters has the wrong size.")
        })?;
        if !params.is_sane(input.breaker_tails.len()) {
            return Err(KernelError::step(format!(
                "Sampling parameters are out of range ({params:?})."
            )));
        }
        self.check_ids(input.tokens)?;
        self.check_ids(input.bias_ids)?;
        if input.bias_ids.len() != input.bias_values.len() {
            return Err(KernelError::step(
                "Biases and their token ids differ in number.",
            ));
        }
        let words = self.vocab.div_ceil(32);
        if input.mask.is_some_and(|mask| mask.len() < words) {
            return Err(KernelError::step(
                "A token mask is smaller than the vocabulary.",
            ));
        }
        if params.dry_multiplier != 0.0 && input.tokens.len() > self.max_tokens {
            self.max_tokens = input.tokens.len().next_power_of_two();
            self.scratch = Scratch::new(self.vocab, self.max_tokens);
        }
        let context = RowContext {
            params: &params,
            tokens: input.tokens,
            penalty_start: input.penalty_start,
            position: input.tokens.len() as u64,
            bias_ids: input.bias_ids,
            bias_values: input.bias_values,
            breakers: self.breakers(&params, input)?,
            mask: input.mask,
        };
        // SAFETY: `Level::best` is a level that the machine has.
        Ok(unsafe {
            sample(
                self.level,
                logits,
                &context,
                &mut self.scratch,
                top_ids,
                top_logprobs,
            )
        })
    }

    /// Score the token `target`; see [`score`]. The alternatives are as many as `top_ids` has room for.
    pub fn score(
        &mut self,
        logits: &[f32],
        target: i32,
        top_ids: &mut [i32],
        top_logprobs: &mut [f32],
    ) -> Result<Scored, KernelError> {
        self.check_logits(logits)?;
        self.check_ids(&[target])?;
        if top_ids.len() != top_logprobs.len() || top_ids.len() > MAX_TOP_LOGPROBS {
            return Err(KernelError::step(
                "Alternatives have no room of the right size.",
            ));
        }
        let (target, scratch) = (target as usize, &mut self.scratch);
        // SAFETY: `Level::best` is a level that the machine has.
        Ok(unsafe { score(self.level, logits, target, scratch, top_ids, top_logprobs) })
    }

    /// Log-probabilities of `ids`; see [`token_id_logprobs`].
    pub fn logprobs_of(
        &mut self,
        logits: &[f32],
        ids: &[i32],
        logprobs: &mut [f32],
    ) -> Result<(), KernelError> {
        self.check_logits(logits)?;
        self.check_ids(ids)?;
        if ids.len() != logprobs.len() {
            return Err(KernelError::step(
                "Token ids and their logprobs differ in number.",
            ));
        }
        // SAFETY: `Level::best` is a level that the machine has.
        unsafe { token_id_logprobs(self.level, logits, ids, &mut self.scratch, logprobs) };
        Ok(())
    }

    /// The row's own patterns among those of the step.
    fn breakers<'a>(
        &self,
        params: &SamplingRow,
        input: &RowInput<'a>,
    ) -> Result<Breakers<'a>, KernelError> {
        let count = params.num_breakers as usize;
        if params.dry_multiplier == 0.0 || count == 0 {
            return Ok(Breakers::default());
        }
        let words = self.vocab.div_ceil(32);
        let patterns = input.breaker_tails.len() / MAX_BREAKER_TAIL;
        if input.breaker_heads.len() != patterns * words {
            return Err(KernelError::step(
                "The arrays of breakers contradict each other.",
            ));
        }
        let first = params.first_breaker as usize;
        Ok(Breakers::new(
            &input.breaker_heads[first * words..][..count * words],
            &input.breaker_tails[first * MAX_BREAKER_TAIL..][..count * MAX_BREAKER_TAIL],
            words,
        ))
    }

    fn check_logits(&self, logits: &[f32]) -> Result<(), KernelError> {
        if logits.len() == self.vocab {
            return Ok(());
        }
        Err(KernelError::step(format!(
            "A row has {} logits for a vocabulary of {}.",
            logits.len(),
            self.vocab
        )))
    }

    fn check_ids(&self, ids: &[i32]) -> Result<(), KernelError> {
        match ids.iter().find(|&&id| id < 0 || id as usize >= self.vocab) {
            None => Ok(()),
            Some(id) => Err(KernelError::step(format!(
                "Token id {id} is outside the vocabulary of {}.",
                self.vocab
            ))),
        }
    }
}

fn check_alternatives(top_ids: &[i32], top_logprobs: &[f32]) -> Result<(), KernelError> {
    if top_ids.len() == MAX_TOP_LOGPROBS && top_logprobs.len() == MAX_TOP_LOGPROBS {
        return Ok(());
    }
    Err(KernelError::step(
        "Alternatives have no room of the right size.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(params: &SamplingRow) -> &[u8] {
        let bytes = std::ptr::from_ref(params).cast::<u8>();
        // SAFETY: a whole record, read as bytes while it is borrowed.
        unsafe { std::slice::from_raw_parts(bytes, size_of::<SamplingRow>()) }
    }

    fn input<'a>(params: &'a [u8], tokens: &'a [i32]) -> RowInput<'a> {
        RowInput {
            params,
            tokens,
            penalty_start: 0,
            bias_ids: &[],
            bias_values: &[],
            breaker_heads: &[],
            breaker_tails: &[],
            mask: None,
        }
    }

    const GREEDY: SamplingRow = crate::plan::tests::GREEDY;

    #[test]
    fn what_is_out_of_range_is_refused() {
        let mut sampler = RowSampler::new(40);
        let (mut ids, mut logprobs) = ([0; MAX_TOP_LOGPROBS], [0.0; MAX_TOP_LOGPROBS]);
        let mut logits = [0.0; 40];
        logits[7] = 1.0;
        let params = GREEDY;
        let good = input(record(&params), &[1, 2, 39]);
        let hot = SamplingRow {
            temperature: f32::NAN,
            ..GREEDY
        };
        let dry = SamplingRow {
            dry_multiplier: 1.0,
            num_breakers: 1,
            ..GREEDY
        };
        let bad = [
            input(&record(&params)[1..], &[]),
            input(record(&hot), &[]),
            input(record(&dry), &[]),
            input(record(&params), &[40]),
            input(record(&params), &[-1]),
            RowInput {
                bias_ids: &[40],
                bias_values: &[1.0],
                ..good
            },
            RowInput {
                bias_ids: &[4],
                ..good
            },
            RowInput {
                mask: Some(&[1]),
                ..good
            },
            RowInput {
                breaker_heads: &[0],
                breaker_tails: &[-1; MAX_BREAKER_TAIL],
                ..input(record(&dry), &[])
            },
        ];
        for input in bad {
            let refused = sampler.sample(&mut logits, &input, &mut ids, &mut logprobs);
            assert!(refused.is_err(), "{input:?}");
        }
        assert!(
            sampler
                .sample(&mut logits[1..], &good, &mut ids, &mut logprobs)
                .is_err()
        );
        assert!(
            sampler
                .sample(&mut logits, &good, &mut ids[1..], &mut logprobs)
                .is_err()
        );
        assert!(sampler.score(&logits, 40, &mut [], &mut []).is_err());
        assert!(sampler.score(&logits, 1, &mut [0], &mut []).is_err());
        assert!(sampler.logprobs_of(&logits, &[1], &mut []).is_err());
        assert!(sampler.logprobs_of(&logits, &[-1], &mut [0.0]).is_err());
        let sampled = sampler.sample(&mut logits, &good, &mut ids, &mut logprobs);
        assert_eq!(sampled.unwrap().token, Some(7));
    }

    #[test]
    fn a_longer_row_with_a_penalty_gets_more_scratch() {
        let mut sampler = RowSampler::new(8);
        let (mut ids, mut logprobs) = ([0; MAX_TOP_LOGPROBS], [0.0; MAX_TOP_LOGPROBS]);
        let params = SamplingRow {
            dry_multiplier: 5.0,
            dry_base: 2.0,
            dry_allowed_length: 1,
            ..GREEDY
        };
        for length in [2, 40, 9] {
            let tokens: Vec<i32> = (0..length).map(|at| at % 2).collect();
            let mut logits = [0.0; 8];
            logits[(length % 2) as usize] = 1.0; // it would continue the repetition
            let row = input(record(&params), &tokens);
            let sampled = sampler.sample(&mut logits, &row, &mut ids, &mut logprobs);
            let expected = if length == 2 { 0 } else { 1 - length % 2 };
            assert_eq!(sampled.unwrap().token, Some(expected));
        }
    }
}
