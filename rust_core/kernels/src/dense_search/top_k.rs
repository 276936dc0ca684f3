//! The best rows of one query so far.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A row and its score. The *greatest* in the order is the worst: the lowest score, of equal scores the highest slot.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Found {
    score: f32,
    slot: usize,
}

impl Eq for Found {}

impl Ord for Found {
    fn cmp(&self, other: &Self) -> Ordering {
        // No score is NaN; the zeros of both signs are equal.
        let scores = other.score.partial_cmp(&self.score);
        scores
            .unwrap_or(Ordering::Equal)
            .then(self.slot.cmp(&other.slot))
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// At most `k` rows; adding one costs a comparison, or `log k` steps if it is among the best.
#[derive(Debug)]
pub(super) struct TopK {
    k: usize,
    worst_first: BinaryHeap<Found>,
    /// Scores below this are not among the best; NaN compares as not.
    bar: f32,
}

impl TopK {
    /// `k` is at least 1.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            worst_first: BinaryHeap::new(),
            bar: f32::NEG_INFINITY,
        }
    }

    #[inline(always)]
    pub fn add(&mut self, slot: usize, score: f32) {
        if score >= self.bar {
            self.insert(Found { score, slot });
        }
    }

    #[cold]
    fn insert(&mut self, found: Found) {
        if self.worst_first.len() < self.k {
            self.worst_first.push(found);
        } else if let Some(mut worst) = self.worst_first.peek_mut()
            && found < *worst
        {
            *worst = found;
        }
        if self.worst_first.len() == self.k
            && let Some(worst) = self.worst_first.peek()
        {
            self.bar = worst.score;
        }
    }

    pub fn merge(&mut self, other: Self) {
        for found in other.worst_first {
            self.add(found.slot, found.score);
        }
    }

    /// Write the rows, best first; elements beyond their number are left as they are.
    pub fn write(self, slots: &mut [i64], scores: &mut [f32]) {
        let found = self.worst_first.into_sorted_vec();
        for (found, (slot, score)) in found.iter().zip(slots.iter_mut().zip(scores)) {
            (*slot, *score) = (found.slot as i64, found.score);
        }
    }
}
