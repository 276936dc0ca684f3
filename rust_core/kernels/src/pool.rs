//! Worker threads that run one closure together, with barriers inside it.
//!
//! Hot path. A step is one job; its phases meet at [`Worker::barrier`]. The calling thread
//! is worker 0. Waiting spins for at most [`SPIN_US`] and then parks: when another process holds a
//! peer's core, spinning on would only take more time from it (see `waiting.rs`). Between two steps of a
//! running engine lies its caller's bookkeeping: workers spin for [`IDLE_SPIN_US`] then. A barrier among running peers
//! costs about a microsecond, a parked one a wake-up of some tens. Do not add locks to the fast path.
//!
//! In a job of [`Pool::run`] all workers take part from beginning to end. In one of [`Pool::run_elastic`] they come when
//! they come and may leave before its end, all but the caller: somebody who is about to compute on this machine borrows
//! a worker's core ([`CoreLoan`]) and gets it between two pieces of work, and not by interrupting one that everybody
//! waits for then. A worker that comes (back) runs the closure from the beginning, takes no work and waits for nobody,
//! until it has caught up with the others' phase.
//!
//! A worker that panics poisons the pool: everybody leaves their barriers, the job's caller gets an error,
//! and so does every later one.

mod crew;
mod waiting;

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use self::crew::{Crew, MOST_WORKERS, Roll};
use self::waiting::{Patience, Waiters, spins_within};
use crate::amx::thread_tiles;
use crate::error::KernelError;
use crate::topology::{Topology, pin_current_thread};

/// How long a waiter spins before it parks, at most.
const SPIN_US: u64 = 200;

/// How long a worker spins for the next job: longer than a caller takes between two, because being woken costs
/// as much as a fifth of a small model's step.
const IDLE_SPIN_US: u64 = 300;

/// How long a borrower waits for a core, at most. A piece of work is much shorter, if nobody holds it up.
const LOAN_PATIENCE: Duration = Duration::from_millis(2);

type Job<'a> = &'a (dyn Fn(&Worker<'_>) + Sync + 'a);

struct Shared {
    size: usize,
    /// Spins of a worker between jobs.
    idle_spins: u32,
    patience: Patience,
    /// Who takes part in the current job.
    roll: Roll,
    /// Those who wait for the crew to change: at a barrier, at the end of a job, for a core.
    crew_changes: Waiters,
    /// Advanced when a job has begun, and when a core was given back.
    calls: AtomicU32,
    called: Waiters,
    /// Of the current or last job: its number, and in the lowest bit whether workers come and go in it.
    announced: AtomicU32,
    /// How many have borrowed the last worker's core.
    loans: AtomicU32,
    /// Whether that worker is inside a job.
    last_is_inside: AtomicBool,
    /// Written by the caller while nobody is inside a job, read by whoever is inside it.
    job: UnsafeCell<Option<Job<'static>>>,
    stop: AtomicBool,
    poisoned: AtomicBool,
    panic: Mutex<Option<String>>,
}

// SAFETY: `job` is the only field that is not Sync. It is written only by `Pool::begin` and `Pool::end` (which take
// `&mut self`, so by one thread) while nobody is inside a job, and published by the SeqCst `roll`.
unsafe impl Sync for Shared {}
// SAFETY: as above; a job is Sync, so a reference to it may cross threads.
unsafe impl Send for Shared {}

/// Whether workers come and go in the job that was announced like this.
fn is_elastic(announced: u32) -> bool {
    announced & 1 == 1
}

/// Leaves a poisoned barrier; carried by the unwinding of the workers that did not fail themselves.
struct Poisoned;

impl Shared {
    fn poison(&self, payload: &(dyn Any + Send)) {
        if !payload.is::<Poisoned>() {
            let message = payload
                .downcast_ref::<&str>()
                .map(ToString::to_string)
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".into());
            self.panic
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(message);
        }
        self.poisoned.store(true, Ordering::SeqCst);
        self.crew_changes.wake();
    }

    fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::SeqCst)
    }

    fn leave_if_poisoned(&self) {
        if self.is_poisoned() {
            panic_any(Poisoned);
        }
    }

    /// Change the crew, and wake who waits for that: a phase that is over, a worker that left.
    fn change(&self, change: impl Fn(Crew) -> Crew) {
        let changed = self.roll.update(|crew| Some(change(crew)));
        if let Some((before, after)) = changed
            && (after.phase, after.inside) != (before.phase, before.inside)
        {
            self.crew_changes.wake();
        }
    }

    /// Whether worker `index` is to leave its core to a borrower now.
    fn is_lent(&self, index: usize) -> bool {
        index > 0 && index + 1 == self.size && self.loans.load(Ordering::SeqCst) > 0
    }

    /// Run one worker's part of a job; a panic poisons the pool instead of leaving the closure.
    fn run_part(&self, job: Job<'_>, index: usize, elastic: bool, member: bool) {
        let worker = Worker {
            index,
            shared: self,
            elastic,
            phase: Cell::new(0),
            member: Cell::new(member),
            withdrawn: Cell::new(false),
        };
        let run = || {
            worker.catch_up();
            job(&worker);
        };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
            self.poison(payload.as_ref());
        }
        if worker.member.get() {
            self.change(Crew::withdraw);
        }
    }

    /// Take part in the current job, if there is one for worker `index`; `last` is the one it ran to its end.
    fn take_part(&self, index: usize, last: &mut u32) {
        let announced = self.announced.load(Ordering::SeqCst);
        let elastic = is_elastic(announced);
        if elastic {
            if self.is_lent(index) || self.roll.update(Crew::enter).is_none() {
                return;
            }
        } else if announced == *last {
            return; // run already, or none at all
        } else {
            // Counted among those inside from the beginning: it does not end before this worker has run.
            *last = announced;
        }
        self.note_inside(index, true);
        // SAFETY: this worker is inside: the job was written before, and stays until it leaves.
        let job = unsafe { (*self.job.get()).expect("a job that has begun") };
        self.run_part(job, index, elastic, !elastic);
        self.note_inside(index, false);
        self.change(Crew::leave);
    }

    fn note_inside(&self, index: usize, inside: bool) {
        if index + 1 == self.size {
            self.last_is_inside.store(inside, Ordering::SeqCst);
        }
    }

    fn work(&self, index: usize) {
        let (mut heard, mut last) = (0, 0);
        loop {
            let spins = if self.is_lent(index) {
                0
            } else {
                self.idle_spins
            };
            let come = || self.calls.load(Ordering::SeqCst) != heard;
            self.called.wait(spins, come);
            // Before anything else is looked at: what comes later is heard next time.
            heard = self.calls.load(Ordering::SeqCst);
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            self.take_part(index, &mut last);
        }
    }

    /// Something has begun that idle workers should look at.
    fn call(&self) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.called.wake();
    }
}

/// A worker's view of the job it runs.
pub struct Worker<'a> {
    index: usize,
    shared: &'a Shared,
    elastic: bool,
    /// Barriers this worker has passed in this run of the closure.
    phase: Cell<u32>,
    /// Whether barriers wait for it.
    member: Cell<bool>,
    /// Whether it has left: it comes back by running the closure anew.
    withdrawn: Cell<bool>,
}

impl Worker<'_> {
    /// Position among the workers, [0, size).
    pub fn index(&self) -> usize {
        self.index
    }

    pub fn size(&self) -> usize {
        self.shared.size
    }

    /// Whether workers come and go, so that nobody has a share of his own.
    pub fn is_elastic(&self) -> bool {
        self.elastic && self.shared.size > 1
    }

    /// Whether the others wait for this worker at the next barrier: it is in the same phase as they are.
    pub fn is_member(&self) -> bool {
        self.member.get()
    }

    /// Whether it may take (more) work of the phase at hand: it is a member, and nobody has borrowed its core.
    pub fn may_work(&self) -> bool {
        self.is_member() && !self.is_called_away()
    }

    fn is_called_away(&self) -> bool {
        self.elastic && self.shared.is_lent(self.index)
    }

    /// Wait until every worker that takes part has come here; writes before it are visible to all after it.
    pub fn barrier(&self) {
        let shared = self.shared;
        if shared.size == 1 {
            return;
        }
        shared.leave_if_poisoned();
        let phase = self.phase.replace(self.phase.get() + 1);
        if !self.member.get() {
            self.catch_up();
        } else if self.is_called_away() {
            self.member.set(false);
            self.withdrawn.set(true);
            shared.change(Crew::withdraw);
        } else {
            shared.change(Crew::arrive);
            let passed = || shared.roll.get().phase != phase || shared.is_poisoned();
            shared.patience.wait(&shared.crew_changes, passed);
        }
        shared.leave_if_poisoned();
    }

    /// Become a member if this is the phase that the others are in.
    fn catch_up(&self) {
        if self.member.get() || self.withdrawn.get() || self.is_called_away() {
            return;
        }
        let join = |crew: Crew| crew.join(self.phase.get());
        self.member.set(self.shared.roll.update(join).is_some());
    }

    /// This worker's contiguous share of `items`: the same one for the same count, so that a core
    /// meets its own weights again in every step. Not for elastic jobs, in which nobody may come for it.
    pub fn share(&self, items: usize) -> Range<usize> {
        let (size, index) = (self.shared.size, self.index);
        debug_assert!(!self.is_elastic());
        (items * index / size)..(items * (index + 1) / size)
    }
}

/// Hands out the core of a pool's last worker.
#[derive(Clone)]
pub struct CoreLender(Arc<Shared>);

impl CoreLender {
    /// Have the last worker leave its core, as soon as it has finished the piece of work at hand: wait for that, though
    /// never for long, and not at all where a job needs all its workers or the pool has no other one.
    pub fn lend(&self) -> CoreLoan {
        let shared = &*self.0;
        shared.loans.fetch_add(1, Ordering::SeqCst);
        let left = || {
            !shared.last_is_inside.load(Ordering::SeqCst)
                || !is_elastic(shared.announced.load(Ordering::SeqCst))
        };
        if shared.size > 1 {
            shared.crew_changes.sleep(LOAN_PATIENCE, left);
        }
        CoreLoan(Arc::clone(&self.0))
    }
}

/// A borrowed core; dropped, it goes back to its worker.
pub struct CoreLoan(Arc<Shared>);

impl Drop for CoreLoan {
    fn drop(&mut self) {
        if self.0.loans.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.call();
        }
    }
}

/// Threads that wait for jobs; dropped, they end.
pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// A forked child has the pool's memory but none of its threads.
    process: u32,
}

impl Pool {
    /// Start `threads` workers (None: as many as the topology says), the caller counted.
    pub fn new(threads: Option<usize>, topology: &Topology) -> Result<Self, KernelError> {
        let size = threads.unwrap_or_else(|| topology.default_threads());
        if size == 0 || size > MOST_WORKERS {
            return Err(KernelError::config(format!(
                "{size} compute threads were asked for; it must be between 1 and {MOST_WORKERS}."
            )));
        }
        // More threads than processors: whoever spins keeps a peer from running.
        let spins_for = |micros| {
            if size > topology.affinity.len() {
                0
            } else {
                spins_within(micros)
            }
        };
        let spins = spins_for(SPIN_US);
        let shared = Arc::new(Shared {
            size,
            idle_spins: spins_for(IDLE_SPIN_US),
            patience: Patience::new(spins),
            roll: Roll::new(),
            crew_changes: Waiters::new(),
            calls: AtomicU32::new(0),
            called: Waiters::new(),
            announced: AtomicU32::new(0),
            loans: AtomicU32::new(0),
            last_is_inside: AtomicBool::new(false),
            job: UnsafeCell::new(None),
            stop: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let mut pool = Self {
            shared: Arc::clone(&shared),
            threads: Vec::with_capacity(size - 1),
            process: std::process::id(),
        };
        for index in 1..size {
            let shared = Arc::clone(&shared);
            // The caller belongs to somebody else and is not pinned; the others are, as long as
            // every one has a core of its own.
            let core = (size <= topology.cores.len()).then(|| topology.cores[index]);
            let thread = std::thread::Builder::new()
                .name(format!("pravaha-{index}"))
                .spawn(move || {
                    if let Some(core) = core {
                        pin_current_thread(core);
                    }
                    shared.work(index);
                })
                .map_err(|error| {
                    KernelError::Worker(format!("Compute thread {index} did not start: {error}."))
                })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    pub fn size(&self) -> usize {
        self.shared.size
    }

    /// Somebody else's way to a core of this pool's.
    pub fn lender(&self) -> CoreLender {
        CoreLender(Arc::clone(&self.shared))
    }

    /// Run `job` on every worker at once; returns when all have finished.
    pub fn run(&mut self, job: Job<'_>) -> Result<(), KernelError> {
        self.run_kind(job, false)
    }

    /// Run `job` on the caller and on those workers that have time for it: they come later, leave and come back, and
    /// perhaps none does. Between two barriers all work is taken piece by piece from counters that stay exhausted, by
    /// workers that [may](Worker::may_work), and nothing else is read or written that a phase changes. Returns when
    /// everybody has left.
    pub fn run_elastic(&mut self, job: Job<'_>) -> Result<(), KernelError> {
        self.run_kind(job, true)
    }

    fn run_kind(&mut self, job: Job<'_>, elastic: bool) -> Result<(), KernelError> {
        if std::process::id() != self.process {
            return Err(KernelError::Worker(
                "The engine was started before this process was forked: start it anew.".into(),
            ));
        }
        self.check()?;
        self.begin(job, elastic);
        self.shared.run_part(job, 0, elastic, true);
        self.end();
        // The caller goes about its own business now.
        thread_tiles::release();
        self.check()
    }

    fn begin(&mut self, job: Job<'_>, elastic: bool) {
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes. Nobody reads the job but from inside it, and `end`, which
        // is called on every path since `run_part` does not unwind, waits until nobody is there.
        let job_for_ever = unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) };
        // SAFETY: nobody is inside a job, so nobody else touches the cell.
        unsafe { *shared.job.get() = Some(job_for_ever) };
        let here = if elastic { 1 } else { shared.size as u32 };
        shared.roll.set(Crew {
            phase: 0,
            inside: here,
            members: here,
            arrived: 0,
            open: elastic,
        });
        // Behind the roll: whom a job counts without having asked goes by the announcement.
        let last = shared.announced.load(Ordering::SeqCst);
        let next = (last | 1).wrapping_add(1) | u32::from(elastic);
        shared.announced.store(next, Ordering::SeqCst);
        if shared.size > 1 {
            shared.call();
        }
    }

    fn end(&mut self) {
        let shared = &*self.shared;
        shared.change(|crew| Crew {
            open: false,
            ..crew
        });
        let alone = || shared.roll.get().inside == 1;
        shared.patience.wait(&shared.crew_changes, alone);
        shared.roll.set(Crew::NOBODY);
        // SAFETY: nobody else is inside, and nobody comes in.
        unsafe { *shared.job.get() = None };
    }

    fn check(&self) -> Result<(), KernelError> {
        if !self.shared.poisoned.load(Ordering::SeqCst) {
            return Ok(());
        }
        let panic = self
            .shared
            .panic
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Err(KernelError::Worker(format!(
            "A compute thread failed ({}): load the model again.",
            panic.as_deref().unwrap_or("no message")
        )))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            std::mem::take(&mut self.threads)
                .into_iter()
                .for_each(std::mem::forget);
            return;
        }
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.call();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn pool(threads: usize) -> Pool {
        Pool::new(Some(threads), &Topology::detect()).unwrap()
    }

    #[test]
    fn every_worker_runs_every_job_once() {
        for threads in [1, 2, 5] {
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
        // Five threads on whatever this machine has: also the oversubscribed case.
        let mut pool = pool(5);
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
    fn a_panic_is_an_error_for_now_and_later_and_nobody_hangs() {
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
    fn who_comes_to_a_barrier_after_the_panic_leaves_it_too() {
        let mut pool = pool(3);
        let error = pool.run(&|worker| {
            assert!(worker.index() != 1, "broken kernel");
            while worker.index() == 2 && !worker.shared.is_poisoned() {
                std::thread::yield_now();
            }
            worker.barrier();
        });
        assert!(error.unwrap_err().to_string().contains("broken kernel"));
    }

    /// Phases of ten items each, all taken from counters; every item is computed once, and in its phase.
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
    fn an_elastic_job_is_done_once_whoever_comes_and_goes() {
        for threads in [1, 2, 3, 5] {
            let mut pool = pool(threads);
            let (lender, over) = (pool.lender(), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let loan = lender.lend();
                        std::thread::yield_now();
                        drop(loan);
                        std::thread::yield_now();
                    }
                });
                for phases in 1..100 {
                    run_phases(&mut pool, phases);
                    // The other kind between them: everybody takes part.
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
    fn who_lent_its_core_works_for_nobody_and_comes_back() {
        let mut pool = pool(2);
        let loan = pool.lender().lend();
        pool.run_elastic(&|worker| assert_eq!(worker.index(), 0))
            .unwrap();
        drop(loan);
        // Now it comes, and all wait for it: it is not let off before it was seen.
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
    fn a_core_is_left_between_two_pieces_of_work_and_taken_up_again_in_the_same_job() {
        let mut pool = pool(2);
        let lender = pool.lender();
        let flags: [AtomicBool; 4] = std::array::from_fn(|_| AtomicBool::new(false));
        let [working, borrowed, done_with, seen_again] = &flags;
        let until = |flag: &AtomicBool| {
            while !flag.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until(working);
                let loan = lender.lend();
                borrowed.store(true, Ordering::SeqCst);
                until(done_with);
                drop(loan);
            });
            pool.run_elastic(&|worker| {
                for phase in 0..20 {
                    match (worker.index(), phase) {
                        (0, 0) => until(borrowed),
                        (0, 5) => done_with.store(true, Ordering::SeqCst),
                        (0, 10) => until(seen_again),
                        (1, 0) if worker.may_work() => {
                            working.store(true, Ordering::SeqCst);
                            while worker.may_work() {
                                std::thread::yield_now();
                            }
                        }
                        (1, 1..5) => assert!(!worker.may_work()),
                        (1, 10) if worker.may_work() => seen_again.store(true, Ordering::SeqCst),
                        _ => (),
                    }
                    worker.barrier();
                }
            })
            .unwrap();
        });
    }

    #[test]
    fn a_panic_in_an_elastic_job_is_an_error_and_nobody_hangs() {
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
        // The worker announces itself as a sleeper once it has stopped spinning.
        while !pool.shared.called.sleeping() {
            std::thread::yield_now();
        }
        pool.run(&|_| {}).unwrap();
    }

    #[test]
    fn absurd_thread_counts_are_refused() {
        for threads in [0, 5000] {
            assert!(Pool::new(Some(threads), &Topology::detect()).is_err());
        }
    }
}
