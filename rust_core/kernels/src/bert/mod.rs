//! A BERT encoder for text embeddings: mean-pooled, normalised to length 1.
//!
//! Texts are ragged: their tokens are concatenated without padding. Workers take groups of whole
//! texts from an atomic counter and compute all layers of a group independently, so there are no barriers,
//! and a vector's bits do not depend on the other texts, their order or the number of threads.
//!
//! Everything is computed in f32 for any element type of the file, or matrix products and attention scores from bytes
//! ([`Precision`]).

mod attention;
mod forward;
mod int8;
mod precision;
mod spec;
mod weights;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::dispatch::Level;
use crate::error::KernelError;
use crate::format::open_weights;
use crate::topology::Topology;

use forward::Forward;
pub use precision::Precision;
pub use spec::BertSpec;
use weights::BertWeights;

/// Tokens per group: enough rows to amortise a pass over the weights, few enough to distribute a handful of texts over the
/// workers.
const GROUP_TOKENS: usize = 128;

/// Niceness added to the workers of a small call, such as a query: running generations go first.
const NICENESS: i32 = 5;

/// Niceness added to the workers of a large call: embedding a corpus is background work. With 5, the workers would take a
/// quarter of each core from running generations; with 15 it is 3 %, or a tenth where the executor itself has niceness 5.
const BULK_NICENESS: i32 = 15;

/// Groups above which a call is large.
const BULK_GROUPS: usize = 8;

/// A loaded encoder. Can be shared between threads; each call allocates its own scratch memory.
#[derive(Debug)]
pub struct BertEncoder {
    spec: BertSpec,
    weights: BertWeights,
    precision: Precision,
    level: Level,
    threads: usize,
}

impl BertEncoder {
    /// Load from `config.json`'s text and a safetensors file.
    ///
    /// # Errors
    /// The configuration or the weights are damaged or unsupported, or memory is short.
    pub fn load(
        config: &str,
        weights: &Path,
        precision: Precision,
        threads: Option<usize>,
        dispatch: &str,
    ) -> Result<Self, KernelError> {
        let spec = BertSpec::from_json(config)?;
        let source = open_weights(&[weights.to_owned()])
            .map_err(|error| KernelError::model(error.to_string()))?;
        Ok(Self {
            weights: BertWeights::load(&spec, source.as_ref(), precision)?,
            spec,
            precision,
            level: Level::choose(dispatch)?,
            threads: threads
                .unwrap_or_else(|| Topology::detect().default_threads())
                .max(1),
        })
    }

    pub fn spec(&self) -> &BertSpec {
        &self.spec
    }

    /// Embed ragged texts.
    ///
    /// Text `i` is `ids[starts[i]..starts[i + 1]]`, including special tokens; its vector is row `i` of `out`.
    ///
    /// # Errors
    /// The arrays are inconsistent or do not fit the model (nothing was computed), memory is short, or a worker
    /// panicked.
    pub fn encode(&self, ids: &[i32], starts: &[i64], out: &mut [f32]) -> Result<(), KernelError> {
        let texts = self.check(ids, starts, out.len())?;
        let groups = group(&texts);
        let most = groups
            .iter()
            .map(|group| texts[group.end - 1].end - texts[group.start].start);
        let most = most.max().unwrap_or(0);
        let next = AtomicUsize::new(0);
        let width = self.spec.hidden_size;
        let mut rest = out;
        let mut parts = Vec::with_capacity(groups.len());
        for group in &groups {
            let (part, after) = rest.split_at_mut(group.len() * width);
            parts.push(Mutex::new(part));
            rest = after;
        }
        let failure = Mutex::new(None);
        let work = || {
            let run = |mut forward: Forward<'_>| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(group) = groups.get(at) else { return };
                    let mut part = parts[at].lock().unwrap_or_else(PoisonError::into_inner);
                    forward.run(ids, &texts[group.clone()], &mut part);
                }
            };
            let forward = Forward::new(&self.spec, &self.weights, self.precision, self.level, most);
            if let Err(error) = forward.map(run) {
                next.store(groups.len(), Ordering::Relaxed);
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        };
        let workers = self.threads.min(groups.len());
        let niceness = if groups.len() > BULK_GROUPS {
            BULK_NICENESS
        } else {
            NICENESS
        };
        let panicked = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..workers)
                .map(|_| {
                    scope.spawn(|| {
                        lower_priority(niceness);
                        work();
                    })
                })
                .collect();
            // Joined explicitly: the scope itself would propagate a panic.
            handles.into_iter().any(|handle| handle.join().is_err())
        });
        if panicked {
            return Err(KernelError::Worker("An embedding worker failed.".into()));
        }
        failure
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .map_or(Ok(()), Err)
    }

    /// Validate the arguments and return the token range of each text.
    fn check(
        &self,
        ids: &[i32],
        starts: &[i64],
        out: usize,
    ) -> Result<Vec<std::ops::Range<usize>>, KernelError> {
        let spec = &self.spec;
        let count = starts.len().saturating_sub(1);
        let ends = starts.first() == Some(&0) && starts.last() == Some(&(ids.len() as i64));
        if !ends || out != count * spec.hidden_size {
            return Err(KernelError::step(
                "The texts' arrays have lengths that contradict each other.",
            ));
        }
        let mut texts = Vec::with_capacity(count);
        for (text, pair) in starts.windows(2).enumerate() {
            let length = pair[1].saturating_sub(pair[0]);
            if length < 1 || length > spec.max_positions as i64 {
                return Err(KernelError::step(format!(
                    "Text {text} has {length} tokens; this model takes 1 to {}.",
                    spec.max_positions
                )));
            }
            texts.push(pair[0] as usize..pair[1] as usize);
        }
        if let Some(id) = ids
            .iter()
            .find(|&&id| id < 0 || id as usize >= spec.vocab_size)
        {
            return Err(KernelError::step(format!(
                "The texts hold token id {id}, beyond the vocabulary of {}.",
                spec.vocab_size
            )));
        }
        Ok(texts)
    }
}

/// Divide consecutive texts into groups of about [`GROUP_TOKENS`] tokens.
fn group(texts: &[std::ops::Range<usize>]) -> Vec<std::ops::Range<usize>> {
    let mut groups = Vec::new();
    let (mut first, mut tokens) = (0, 0);
    for (at, text) in texts.iter().enumerate() {
        if at > first && tokens + text.len() > GROUP_TOKENS {
            groups.push(first..at);
            (first, tokens) = (at, 0);
        }
        tokens += text.len();
    }
    if first < texts.len() {
        groups.push(first..texts.len());
    }
    groups
}

/// Add `niceness` to the calling thread's, which the kernel limits to 19; best effort.
fn lower_priority(niceness: i32) {
    #[cfg(target_os = "linux")]
    // SAFETY: on Linux, 0 means the calling thread; a refusal changes nothing.
    unsafe {
        let now = libc::getpriority(libc::PRIO_PROCESS, 0);
        libc::setpriority(libc::PRIO_PROCESS, 0, now + niceness);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::single_range_in_vec_init)] // a list of ranges is meant
    fn groups_hold_whole_texts_and_similar_token_counts() {
        let texts = |lengths: &[usize]| {
            let mut end = 0;
            let mut texts = Vec::new();
            for &length in lengths {
                texts.push(end..end + length);
                end += length;
            }
            group(&texts)
        };
        assert!(texts(&[]).is_empty());
        assert_eq!(texts(&[500]), [0..1]);
        assert_eq!(texts(&[60, 60, 60]), [0..2, 2..3]);
        assert_eq!(texts(&[500, 1, 127, 1]), [0..1, 1..3, 3..4]);
    }
}
