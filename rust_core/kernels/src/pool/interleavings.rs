//! All interleavings of small jobs, explored by loom: `make loom`.
//!
//! The threads run the pool's own code. loom reports deadlocks (a lost wake-up, a barrier that nobody completes) and
//! accesses of a cell that no barrier separates. Threads never spin, and a thread is preempted at most as often as the
//! test says; more often takes hours.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::shared::{Job, Shared, is_elastic};
use super::sync::{AtomicU32, UnsafeCell};
use super::worker::Worker;
use super::yielded_core::YieldedCore;

/// Run `test` on the caller's thread of a pool of `size` workers, in every interleaving with at most `preemptions`
/// preemptions.
fn explore(size: usize, preemptions: usize, test: impl Fn(&Arc<Shared>) + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 100_000;
    model.check(move || {
        let shared = Arc::new(Shared::new(size, 0, 0));
        let threads: Vec<_> = (1..size)
            .map(|index| {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || shared.work(index))
            })
            .collect();
        test(&shared);
        shared.stop();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

/// As `Pool::run` and `Pool::run_elastic`.
fn run(shared: &Shared, elastic: bool, job: Job<'_>) {
    // SAFETY: one thread begins jobs, and ends each before the next.
    unsafe { shared.begin(job, elastic) };
    shared.run_closure(job, 0, elastic, true);
    shared.end();
    assert_eq!(shared.panic_message(), None);
}

/// Counts that workers change without atomics; loom checks that accesses are ordered.
struct Counts(Vec<UnsafeCell<u32>>);

// SAFETY: loom reports accesses that are not ordered.
unsafe impl Sync for Counts {}

impl Counts {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| UnsafeCell::new(0)).collect())
    }

    fn add(&self, index: usize) {
        // SAFETY: loom reports accesses that are not ordered.
        self.0[index].with_mut(|count| unsafe { *count += 1 });
    }

    fn all(&self, value: u32) -> bool {
        // SAFETY: as above.
        let is = |count: &UnsafeCell<u32>| count.with(|count| unsafe { *count == value });
        self.0.iter().all(is)
    }
}

/// A phase of a job: take items from a counter, then wait at a barrier.
fn phase(worker: &Worker<'_>, counter: &AtomicU32, items: &Counts) {
    while worker.may_work() {
        let item = counter.fetch_add(1, Ordering::SeqCst) as usize;
        if item >= items.0.len() {
            break;
        }
        items.add(item);
    }
    worker.barrier();
}

#[test]
fn a_barrier_publishes_what_every_worker_wrote() {
    for (size, preemptions) in [(2, 3), (3, 1)] {
        explore(size, preemptions, move |shared| {
            let counts = Counts::new(size);
            run(shared, false, &|worker| {
                counts.add(worker.index());
                worker.barrier();
                assert!(counts.all(1));
            });
            assert!(counts.all(1));
        });
    }
}

#[test]
fn every_worker_runs_every_plain_job_once() {
    explore(2, 2, |shared| {
        for _ in 0..2 {
            let counts = Counts::new(2);
            run(shared, false, &|worker| counts.add(worker.index()));
            assert!(counts.all(1));
        }
    });
}

#[test]
fn workers_that_join_an_elastic_job_late_take_each_item_once_and_in_its_phase() {
    for (size, preemptions) in [(2, 3), (3, 1)] {
        explore(size, preemptions, |shared| {
            let counters = [AtomicU32::new(0), AtomicU32::new(0)];
            let (first, second) = (Counts::new(2), Counts::new(1));
            run(shared, true, &|worker| {
                phase(worker, &counters[0], &first);
                if worker.may_work() {
                    assert!(first.all(1));
                }
                phase(worker, &counters[1], &second);
            });
            assert!(first.all(1) && second.all(1));
        });
    }
}

#[test]
fn a_yielded_core_comes_back_and_no_item_is_lost() {
    explore(2, 2, |shared| {
        let yielder = {
            let shared = Arc::clone(shared);
            loom::thread::spawn(move || {
                // As `CoreYielder::yield_core` without a timeout, which is no part of the model.
                shared.yield_requests.fetch_add(1, Ordering::SeqCst);
                let left = || {
                    !shared.last_is_running.load(Ordering::SeqCst)
                        || !is_elastic(shared.job_number.load(Ordering::SeqCst))
                };
                shared.active_changed.wait(0, left);
                drop(YieldedCore(shared));
            })
        };
        let (counter, items) = (AtomicU32::new(0), Counts::new(1));
        run(shared, true, &|worker| phase(worker, &counter, &items));
        assert!(items.all(1));
        yielder.join().unwrap();
        // All workers take part again.
        let counts = Counts::new(2);
        run(shared, false, &|worker| counts.add(worker.index()));
        assert!(counts.all(1));
    });
}
