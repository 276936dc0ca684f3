//! The pool by example: plain jobs, elastic jobs, yielded cores and panics.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

fn pool(threads: usize) -> Pool {
    Pool::new(Some(threads), &Topology::detect()).unwrap()
}

#[test]
fn every_worker_runs_every_job_once() {
    for threads in [1, 2, 3, 4, 7] {
        let mut pool = pool(threads);
        let counts: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
        for _ in 0..200 {
            pool.run(&|worker| {
                counts[worker.index()].fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        }
        assert!(
            counts
                .iter()
                .all(|count| count.load(Ordering::Relaxed) == 200)
        );
    }
}

#[test]
fn barriers_separate_phases() {
    // More threads than cores on small machines.
    for threads in [3, 4, 7] {
        let mut pool = pool(threads);
        let phase = AtomicUsize::new(0);
        pool.run(&|worker| {
            for round in 0..300 {
                assert_eq!(phase.load(Ordering::SeqCst), round);
                worker.barrier();
                if worker.index() == round % worker.size() {
                    phase.fetch_add(1, Ordering::SeqCst);
                }
                worker.barrier();
            }
        })
        .unwrap();
        assert_eq!(phase.load(Ordering::SeqCst), 300);
    }
}

#[test]
fn shares_cover_everything_once() {
    for threads in [1, 2, 3, 7] {
        let mut pool = pool(threads);
        for items in [0, 1, 5, 36, 1000] {
            let taken: Vec<AtomicUsize> = (0..items).map(|_| AtomicUsize::new(0)).collect();
            pool.run(&|worker| {
                for item in worker.share(items) {
                    taken[item].fetch_add(1, Ordering::Relaxed);
                }
            })
            .unwrap();
            assert!(taken.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }
}

#[test]
fn a_panic_is_an_error_now_and_later_and_no_worker_hangs() {
    let mut pool = pool(3);
    let error = pool
        .run(&|worker| {
            assert!(worker.index() != 1, "broken kernel");
            worker.barrier();
        })
        .unwrap_err();
    assert!(error.to_string().contains("broken kernel"), "{error}");
    assert!(pool.run(&|_| {}).is_err());
}

#[test]
fn workers_that_leave_a_poisoned_pool_are_not_reported_as_panics() {
    static OTHERS: AtomicUsize = AtomicUsize::new(0);
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        if !payload.is::<&str>() && !payload.is::<String>() {
            OTHERS.fetch_add(1, Ordering::Relaxed);
        }
        previous(info);
    }));
    let mut pool = pool(4);
    pool.run(&|worker| {
        assert!(worker.index() != 1, "broken kernel");
        worker.barrier();
    })
    .unwrap_err();
    assert_eq!(OTHERS.load(Ordering::Relaxed), 0);
}

#[test]
fn a_worker_that_arrives_after_the_panic_leaves_the_barrier_too() {
    let mut pool = pool(3);
    let error = pool.run(&|worker| {
        assert!(worker.index() != 1, "broken kernel");
        while worker.index() == 2 && !worker.is_poisoned() {
            std::thread::yield_now();
        }
        worker.barrier();
    });
    assert!(error.unwrap_err().to_string().contains("broken kernel"));
}

/// Run phases of ten items taken from counters; check that each item is computed once, in its phase.
fn run_phases(pool: &mut Pool, phases: usize) {
    const ITEMS: usize = 10;
    let counters: Vec<AtomicUsize> = (0..phases).map(|_| AtomicUsize::new(0)).collect();
    let done: Vec<AtomicUsize> = (0..phases).map(|_| AtomicUsize::new(0)).collect();
    pool.run_elastic(&|worker| {
        for (phase, counter) in counters.iter().enumerate() {
            while worker.may_work() && counter.fetch_add(1, Ordering::Relaxed) < ITEMS {
                let before = phase.checked_sub(1).map(|before| &done[before]);
                assert!(before.is_none_or(|done| done.load(Ordering::Relaxed) == ITEMS));
                assert!(phase + 1 == phases || done[phase + 1].load(Ordering::Relaxed) == 0);
                done[phase].fetch_add(1, Ordering::Relaxed);
            }
            worker.barrier();
        }
    })
    .unwrap();
    assert!(
        done.iter()
            .all(|done| done.load(Ordering::Relaxed) == ITEMS)
    );
}

#[test]
fn an_elastic_job_is_done_once_while_a_worker_joins_and_leaves() {
    for threads in [1, 2, 3, 4, 7] {
        let mut pool = pool(threads);
        let (yielder, over) = (pool.core_yielder(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let core = yielder.yield_core();
                    std::thread::yield_now();
                    drop(core);
                    std::thread::yield_now();
                }
            });
            for phases in 1..100 {
                run_phases(&mut pool, phases);
                // A plain job between elastic ones: all workers take part.
                let here = AtomicUsize::new(0);
                pool.run(&|worker| {
                    here.fetch_add(1, Ordering::Relaxed);
                    worker.barrier();
                    assert_eq!(here.load(Ordering::Relaxed), worker.size());
                })
                .unwrap();
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_worker_takes_no_work_while_its_core_is_yielded_and_returns_afterwards() {
    let mut pool = pool(2);
    let core = pool.core_yielder().yield_core();
    pool.run_elastic(&|worker| assert_eq!(worker.index(), 0))
        .unwrap();
    drop(core);
    // Now it takes part: the job does not end before it was seen.
    let came = AtomicBool::new(false);
    pool.run_elastic(&|worker| {
        if worker.index() == 1 {
            came.store(true, Ordering::SeqCst);
        }
        while !came.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    })
    .unwrap();
}

#[test]
fn a_core_is_yielded_between_two_items_and_its_worker_returns_within_the_job() {
    let mut pool = pool(2);
    let yielder = pool.core_yielder();
    let flags: [AtomicBool; 4] = std::array::from_fn(|_| AtomicBool::new(false));
    let [working, yielded, done_with, returned] = &flags;
    let until = |flag: &AtomicBool| {
        while !flag.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until(working);
            let core = yielder.yield_core();
            yielded.store(true, Ordering::SeqCst);
            until(done_with);
            drop(core);
        });
        pool.run_elastic(&|worker| {
            for phase in 0..20 {
                match (worker.index(), phase) {
                    (0, 0) => until(yielded),
                    (0, 5) => done_with.store(true, Ordering::SeqCst),
                    (0, 10) => until(returned),
                    (1, 0) if worker.may_work() => {
                        working.store(true, Ordering::SeqCst);
                        while worker.may_work() {
                            std::thread::yield_now();
                        }
                    }
                    (1, 1..5) => assert!(!worker.may_work()),
                    (1, 10) if worker.may_work() => returned.store(true, Ordering::SeqCst),
                    _ => (),
                }
                worker.barrier();
            }
        })
        .unwrap();
    });
}

#[test]
fn a_panic_in_an_elastic_job_is_an_error_and_no_worker_hangs() {
    let mut pool = pool(3);
    let error = pool.run_elastic(&|worker| {
        assert!(worker.index() != 0, "broken kernel");
        worker.barrier();
    });
    assert!(error.unwrap_err().to_string().contains("broken kernel"));
    assert!(pool.run_elastic(&|_| {}).is_err());
}

#[test]
fn idle_workers_park() {
    let mut pool = pool(2);
    pool.run(&|_| {}).unwrap();
    // The worker counts itself as a sleeper once it has stopped spinning.
    while !pool.shared.idle.sleeping() {
        std::thread::yield_now();
    }
    pool.run(&|_| {}).unwrap();
}

#[test]
fn impossible_thread_counts_are_refused() {
    for threads in [0, 5000] {
        assert!(Pool::new(Some(threads), &Topology::detect()).is_err());
    }
}
