//! Selection of the largest logits without sorting the vocabulary.
//!
//! One pass computes the maxima of fixed-size runs of the vocabulary. The k-th largest maximum is a lower
//! bound of the k-th largest logit, so only runs whose maximum reaches it are scanned again.

use super::Scratch;
use crate::simd::{LANES, Lanes, by_level};

/// Logits in a run.
pub(super) const RUN: usize = 64;

/// Sort key of (logit, id): in descending order, larger logits come first, then lower ids.
pub(super) fn key_of(logit: f32, id: usize) -> u64 {
    // Adding zero turns -0 into +0, so that they tie.
    let bits = (logit + 0.0).to_bits();
    let ordered = if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    u64::from(ordered) << 32 | u64::from(u32::MAX - id as u32)
}

pub(super) fn id_of(key: u64) -> usize {
    (u32::MAX - key as u32) as usize
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn run_maxima_body<L: Lanes>(logits: &[f32], maxima: &mut Vec<f32>) -> Option<f32> {
    maxima.clear();
    let (runs, rest) = logits.as_chunks::<RUN>();
    let mut largest = f32::NEG_INFINITY;
    // SAFETY: sixteen elements each; the level's instructions are enabled by `by_level`.
    let mut bad = unsafe {
        let (infinity, zero, one) = (L::splat(f32::INFINITY), L::splat(0.0), L::splat(1.0));
        // Counted per lane in floats: exact up to 2^24, far above any vocabulary size.
        let mut bads = zero;
        for run in runs {
            let mut max = L::splat(f32::NEG_INFINITY);
            for chunk in run.as_chunks::<LANES>().0 {
                let x = L::load(chunk.as_ptr());
                max = max.max(x);
                bads = bads.add(x.select_less(infinity, zero, one));
            }
            let max = max.largest();
            maxima.push(max);
            largest = if max > largest { max } else { largest };
        }
        bads.sum()
    };
    if !rest.is_empty() {
        let mut max = f32::NEG_INFINITY;
        for &x in rest {
            max = if x > max { x } else { max };
            bad += f32::from(u8::from(x.is_nan() || x == f32::INFINITY));
        }
        maxima.push(max);
        largest = if max > largest { max } else { largest };
    }
    (bad == 0.0 && largest > f32::NEG_INFINITY).then_some(largest)
}

by_level! {
    /// Largest logit of each run, and of all logits; None if the row is unusable (a NaN, +inf, or nothing
    /// above -inf).
    ///
    /// # Safety
    /// The machine has the level.
    pub(super) unsafe fn run_maxima(logits: &[f32], maxima: &mut Vec<f32>) -> Option<f32> = run_maxima_body;
}

/// Id of the largest logit; the lowest id among ties.
pub(super) fn argmax(logits: &[f32], maxima: &[f32]) -> usize {
    let mut best = 0;
    for (run, &max) in maxima.iter().enumerate() {
        if max > maxima[best] {
            best = run;
        }
    }
    let run = &logits[best * RUN..logits.len().min((best + 1) * RUN)];
    let at = run.iter().position(|&logit| logit == maxima[best]);
    best * RUN + at.expect("a run holds its maximum")
}

/// Fill `scratch.keys` with every logit of at least `limit`, unordered.
pub(super) fn at_least(logits: &[f32], limit: f32, maxima: &[f32], keys: &mut Vec<u64>) {
    keys.clear();
    for (run, _) in maxima.iter().enumerate().filter(|(_, max)| **max >= limit) {
        let start = run * RUN;
        for (at, &logit) in logits[start..logits.len().min(start + RUN)]
            .iter()
            .enumerate()
        {
            if logit >= limit {
                keys.push(key_of(logit, start + at));
            }
        }
    }
}

/// Fill `scratch.keys` with the `count` largest logits, largest first, ties by lowest id.
/// `scratch.maxima` must be those of `logits`.
pub(super) fn largest(logits: &[f32], count: usize, scratch: &mut Scratch) {
    let count = count.min(logits.len());
    scratch.keys.clear();
    if count == 0 {
        return;
    }
    let mut limit = f32::NEG_INFINITY;
    if count <= scratch.maxima.len() {
        scratch.order.clear();
        scratch.order.extend_from_slice(&scratch.maxima);
        let kth = scratch
            .order
            .select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a))
            .1;
        limit = *kth;
    }
    at_least(logits, limit, &scratch.maxima, &mut scratch.keys);
    if scratch.keys.len() > count {
        scratch
            .keys
            .select_nth_unstable_by(count - 1, |a, b| b.cmp(a));
        scratch.keys.truncate(count);
    }
    scratch.keys.sort_unstable_by(|a, b| b.cmp(a));
}
