//! How the workers of a step divide the work of a phase.
//!
//! With few rows a phase takes microseconds, and each worker always computes the same panels, which its core's cache may
//! still hold. With many, workers take parts from a counter until none is left, so that a worker whose core is used by
//! another thread or program for a while does not delay the others. Parts become smaller towards the end (guided
//! self-scheduling, Polychronopoulos and Kuck 1987), down to one item, which bounds how long the others wait.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::amx::row_tiles::ROWS as TILE_REGISTER;
use crate::pool::Worker;

/// Up to this number of rows, shares are fixed and every worker is needed.
pub const FIXED_ROWS: usize = 8;

/// A part is the remaining items divided by the number of workers and by this.
const PARTS_EACH: usize = 4;

/// Items of the largest part.
const LARGEST_PART: usize = 32;

/// The parts of a phase that one worker computes.
pub struct Parts<'a> {
    worker: &'a Worker<'a>,
    /// The fixed share, until it is returned.
    fixed: Option<Range<usize>>,
    /// Start of the next part; None: shares are fixed.
    counter: Option<&'a AtomicUsize>,
    /// The part after the current one, claimed early so that what is prefetched is this worker's own.
    ahead: Option<Range<usize>>,
    total: usize,
    /// For each item, the cost of all items up to it, itself included; empty: every item costs the same.
    costs: &'a [usize],
}

impl<'a> Parts<'a> {
    /// `worker`'s parts of `total` items of a phase over `rows` rows. `counter` is zero when the phase begins and is
    /// used for nothing else.
    pub fn new(
        worker: &'a Worker<'a>,
        counter: &'a AtomicUsize,
        total: usize,
        rows: usize,
    ) -> Self {
        if rows > FIXED_ROWS && worker.size() > 1 || worker.is_elastic() {
            return Self::dynamic(worker, counter, total);
        }
        Self {
            worker,
            fixed: Some(worker.share(total)),
            counter: None,
            ahead: None,
            total,
            costs: &[],
        }
    }

    /// As [`Parts::dynamic`] with a part's size measured by cost. `costs`: for each item, the cost of all items up to it,
    /// itself included.
    pub fn of_cost(worker: &'a Worker<'a>, counter: &'a AtomicUsize, costs: &'a [usize]) -> Self {
        Self {
            costs,
            ..Self::dynamic(worker, counter, costs.len())
        }
    }

    /// As [`Parts::new`] for items of different lengths, which are taken from the counter however few they are.
    pub fn dynamic(worker: &'a Worker<'a>, counter: &'a AtomicUsize, total: usize) -> Self {
        Self {
            worker,
            fixed: None,
            counter: Some(counter),
            ahead: None,
            total,
            costs: &[],
        }
    }
}

impl Parts<'_> {
    /// The item that this worker computes next, if any; a guess for the last items, which another worker may claim first.
    pub fn upcoming(&self) -> Option<usize> {
        if let Some(part) = &self.ahead {
            return Some(part.start);
        }
        let next = self.counter?.load(Ordering::Relaxed);
        (next < self.total).then_some(next)
    }

    /// The item that it computes after item `item` of `part`, its latest part; a guess likewise.
    pub fn after(&self, part: &Range<usize>, item: usize) -> Option<usize> {
        let next = Some(item + 1).filter(|next| part.contains(next));
        next.or_else(|| self.upcoming())
    }

    /// Claim the next part, if more than `spared` items are left.
    fn claim(&self, counter: &AtomicUsize, spared: usize) -> Option<Range<usize>> {
        if !self.worker.may_work() {
            return None;
        }
        let share = PARTS_EACH * self.worker.size();
        // Relaxed: the phase's barriers publish the results, not the counter.
        let end = |start: usize| {
            let left = self
                .total
                .checked_sub(start)
                .filter(|&left| left > spared)?;
            let part = match self.costs.last() {
                None => left / share,
                Some(all) => {
                    let before = start.checked_sub(1).map_or(0, |last| self.costs[last]);
                    let most = before + (all - before) / share;
                    self.costs[start..].partition_point(|&cost| cost <= most)
                }
            };
            Some(start + part.clamp(1, LARGEST_PART))
        };
        let start = counter
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, end)
            .ok()?;
        Some(start..end(start)?)
    }
}

impl Iterator for Parts<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let Some(counter) = self.counter else {
            return self.fixed.take();
        };
        let part = self.ahead.take().or_else(|| self.claim(counter, 0))?;
        // Leave the last items to the others: one worker would otherwise claim both items of a phase of two.
        self.ahead = self.claim(counter, self.worker.size() - 1);
        Some(part)
    }
}

/// From this number of rows on, an item is long enough that the others would wait for the last one, and slicing it is
/// worth dequantizing a panel more than once.
const MANY_ROWS: usize = 128;

/// Items of a phase, the last of which are cut into slices of rows so that the workers finish together: the remainder of
/// the items modulo the workers, or, with many rows and no remainder, as many items as there are workers.
#[derive(Debug, Clone, Copy)]
pub struct SlicedItems {
    items: usize,
    rows: usize,
    /// Items before the first sliced one.
    whole: usize,
    slices: usize,
    slice_rows: usize,
}

impl SlicedItems {
    pub fn new(items: usize, rows: usize, workers: usize) -> Self {
        let (most, last) = match (rows < MANY_ROWS, items % workers) {
            (true, left_over) => (workers, left_over),
            (false, 0) => (2 * workers, workers),
            (false, left_over) => (2 * workers, left_over),
        };
        let wanted = (rows / TILE_REGISTER).clamp(1, most);
        let slice_rows = rows.div_ceil(wanted).max(1).next_multiple_of(TILE_REGISTER);
        let slices = rows.div_ceil(slice_rows).max(1);
        let last = if slices == 1 { 0 } else { last };
        Self {
            items,
            rows,
            whole: items - last.min(items),
            slices,
            slice_rows,
        }
    }

    /// Number of whole items and slices.
    pub fn count(&self) -> usize {
        self.whole + (self.items - self.whole) * self.slices
    }

    /// The item at `index` and its rows, which begin at a multiple of 16.
    pub fn get(&self, index: usize) -> (usize, Range<usize>) {
        let Some(slice) = index.checked_sub(self.whole) else {
            return (index, 0..self.rows);
        };
        let first = slice % self.slices * self.slice_rows;
        let rows = first..self.rows.min(first + self.slice_rows);
        (self.whole + slice / self.slices, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;
    use crate::topology::Topology;

    #[test]
    fn parts_cover_everything_once() {
        for threads in [1, 2, 3] {
            let mut pool = Pool::new(Some(threads), &Topology::detect()).unwrap();
            for (total, rows) in [(0, 1), (36, 1), (36, 64), (1, 64), (3072, 64), (17, 9)] {
                let counter = AtomicUsize::new(0);
                let taken: Vec<AtomicUsize> = (0..total).map(|_| AtomicUsize::new(0)).collect();
                pool.run(&|worker| {
                    for item in Parts::new(worker, &counter, total, rows).flatten() {
                        taken[item].fetch_add(1, Ordering::Relaxed);
                    }
                })
                .unwrap();
                assert!(taken.iter().all(|n| n.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn parts_by_cost_cover_everything_once_in_shares_of_the_cost_that_is_left() {
        let mut pool = Pool::new(Some(1), &Topology::detect()).unwrap();
        for items in [
            vec![],
            vec![5],
            vec![100, 60, 60, 3, 3, 3, 3, 1],
            vec![7; 50],
        ] {
            let mut all = 0;
            let costs: Vec<usize> = items
                .iter()
                .map(|cost| {
                    all += cost;
                    all
                })
                .collect();
            let counter = AtomicUsize::new(0);
            pool.run(&|worker| {
                let mut next = 0;
                for part in Parts::of_cost(worker, &counter, &costs) {
                    assert_eq!(part.start, next);
                    let left: usize = items[part.start..].iter().sum();
                    let cost: usize = items[part.clone()].iter().sum();
                    assert!(part.len() == 1 || cost <= left / PARTS_EACH);
                    next = part.end;
                }
                assert_eq!(next, items.len());
            })
            .unwrap();
        }
    }

    #[test]
    fn slices_cover_every_row_of_every_item_once_and_evenly() {
        for items in [1, 3, 15, 16, 40] {
            for rows in [0, 1, 8, 16, 31, 32, 33, 47, 64, 100, 512] {
                for workers in [1, 2, 3, 8, 17] {
                    let sliced = SlicedItems::new(items, rows, workers);
                    let mut taken = vec![vec![0; rows]; items];
                    for (item, rows) in (0..sliced.count()).map(|index| sliced.get(index)) {
                        assert!(rows.start.is_multiple_of(TILE_REGISTER));
                        taken[item][rows].iter_mut().for_each(|n| *n += 1);
                    }
                    assert!(taken.iter().flatten().all(|&n| n == 1));
                    if workers == 2 && rows.is_multiple_of(32) && rows > 0 {
                        assert!(sliced.count().is_multiple_of(2));
                    }
                }
            }
        }
    }

    #[test]
    fn no_worker_claims_an_item_early_that_another_could_begin_with() {
        for threads in [2, 3] {
            let mut pool = Pool::new(Some(threads), &Topology::detect()).unwrap();
            let counter = AtomicUsize::new(0);
            pool.run(&|worker| {
                let mut parts = Parts::dynamic(worker, &counter, worker.size());
                assert!(parts.next().is_some());
                worker.barrier();
                assert!(parts.next().is_none());
            })
            .unwrap();
        }
    }

    #[test]
    fn a_worker_knows_its_next_item() {
        let mut pool = Pool::new(Some(2), &Topology::detect()).unwrap();
        let counter = AtomicUsize::new(0);
        pool.run(&|worker| {
            if worker.index() == 0 {
                let mut parts = Parts::new(worker, &counter, 100, 64);
                while let Some(part) = parts.next() {
                    let after = (part.end < 100).then_some(part.end);
                    // With one core there is one worker, and shares are fixed.
                    let expected = if worker.size() == 1 { None } else { after };
                    assert_eq!(parts.upcoming(), expected);
                }
            }
        })
        .unwrap();
    }
}
