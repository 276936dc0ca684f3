//! Worker threads that run one closure together, with barriers inside it.
//!
//! Hot path. A step is one [`Pool::run`]; its phases meet at [`Worker::barrier`]. The calling thread
//! is worker 0. Waiting spins for at most [`SPIN_US`] and then parks: when another process holds a
//! peer's core, spinning on would only take more time from it (see [`Patience`]). Between two steps of a
//! running engine lies its caller's bookkeeping: workers spin for [`IDLE_SPIN_US`] then. A barrier among running peers costs about a
//! microsecond, a parked one a wake-up of some tens. Do not add locks to the fast path.
//!
//! A worker that panics poisons the pool: everybody leaves their barriers, `run` returns an error,
//! and so does every later `run`.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::amx::held;
use crate::error::KernelError;
use crate::topology::{Topology, pin_current_thread};

/// How long a waiter spins before it parks, at most.
const SPIN_US: u64 = 200;

/// How long a worker spins for the next job: longer than a caller takes between two, because being woken costs
/// as much as a fifth of a small model's step.
const IDLE_SPIN_US: u64 = 300;

type Job<'a> = &'a (dyn Fn(&Worker<'_>) + Sync + 'a);

/// A counter that threads wait on to change: spinning first, then parked.
struct Event {
    value: AtomicU32,
    sleepers: AtomicU32,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Event {
    fn new() -> Self {
        Self {
            value: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            lock: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    fn get(&self) -> u32 {
        self.value.load(Ordering::SeqCst)
    }

    /// Change the value and wake every waiter.
    fn advance(&self) {
        // Sequentially consistent with `wait`: either the waiter sees the new value after it has
        // announced itself, or we see the announcement.
        self.value.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.woken.notify_all();
        }
    }

    /// Return once the value differs from `old`; says whether spinning was enough.
    fn wait(&self, old: u32, spins: u32) -> bool {
        for _ in 0..spins {
            if self.value.load(Ordering::Acquire) != old {
                return true;
            }
            std::hint::spin_loop();
        }
        // Products hold tile registers on some machines; whoever sleeps gives them back.
        held::release();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while self.get() == old {
            guard = self
                .woken
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        false
    }
}

/// How long to spin at barriers, learnt from how it went.
///
/// On a machine of one's own a peer arrives within microseconds, and spinning is right. When another
/// process has the peer's core, every microsecond of spinning is taken from somebody who could work,
/// perhaps from that very peer. A wait that ended in parking quarters the next ones; each that did not
/// lengthens them by an eighth.
struct Patience {
    spins: AtomicU32,
    longest: u32,
}

impl Patience {
    fn new(longest: u32) -> Self {
        Self {
            spins: AtomicU32::new(longest),
            longest,
        }
    }

    fn wait(&self, event: &Event, old: u32) {
        let spins = self.spins.load(Ordering::Relaxed);
        let next = if event.wait(old, spins) {
            (spins + spins / 8 + 1).min(self.longest)
        } else {
            (spins / 4).max(self.longest / 32)
        };
        self.spins.store(next, Ordering::Relaxed);
    }
}

struct Shared {
    size: usize,
    /// Spins of a worker between jobs.
    idle_spins: u32,
    patience: Patience,
    /// Advanced once a job; workers wait here between jobs.
    started: Event,
    /// Advanced when the last worker has finished a job.
    finished: Event,
    /// Workers (without the caller) that have not finished the current job.
    running: AtomicU32,
    /// Workers that have arrived at the current barrier.
    arrived: AtomicU32,
    /// Advanced when all have arrived.
    passed: Event,
    /// Written by the caller while all workers wait, read by them after `started` advanced.
    job: UnsafeCell<Option<Job<'static>>>,
    stop: AtomicBool,
    poisoned: AtomicBool,
    panic: Mutex<Option<String>>,
}

// SAFETY: `job` is the only field that is not Sync. It is written only by `Pool::run` (which takes
// `&mut self`, so by one thread) while no worker runs, and published by the SeqCst `started`.
unsafe impl Sync for Shared {}
// SAFETY: as above; a job is Sync, so a reference to it may cross threads.
unsafe impl Send for Shared {}

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
        self.passed.advance();
    }

    fn leave_if_poisoned(&self) {
        if self.poisoned.load(Ordering::SeqCst) {
            panic_any(Poisoned);
        }
    }

    /// Run one worker's part of a job; a panic poisons the pool instead of leaving the closure.
    fn run_part(&self, job: Job<'_>, index: usize) {
        let worker = Worker {
            index,
            shared: self,
        };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| job(&worker))) {
            self.poison(payload.as_ref());
        }
    }

    fn work(&self, index: usize) {
        let mut seen = 0;
        loop {
            self.started.wait(seen, self.idle_spins);
            seen = self.started.get();
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            // SAFETY: `run` wrote the job before it advanced `started`, and keeps it alive and
            // unchanged until `running` has reached zero.
            let job = unsafe { (*self.job.get()).expect("a started job") };
            self.run_part(job, index);
            if self.running.fetch_sub(1, Ordering::SeqCst) == 1 {
                self.finished.advance();
            }
        }
    }
}

/// A worker's view of the job it runs.
pub struct Worker<'a> {
    index: usize,
    shared: &'a Shared,
}

impl Worker<'_> {
    /// Position among the workers, [0, size).
    pub fn index(&self) -> usize {
        self.index
    }

    pub fn size(&self) -> usize {
        self.shared.size
    }

    /// Wait until every worker has come here; writes before it are visible to all after it.
    pub fn barrier(&self) {
        let shared = self.shared;
        if shared.size == 1 {
            return;
        }
        let old = shared.passed.get();
        // Whoever comes after a panic has missed the advance that lets the others out. A panic from here on
        // changes the value just read.
        shared.leave_if_poisoned();
        if shared.arrived.fetch_add(1, Ordering::SeqCst) + 1 == shared.size as u32 {
            shared.arrived.store(0, Ordering::SeqCst);
            shared.passed.advance();
        } else {
            shared.patience.wait(&shared.passed, old);
        }
        shared.leave_if_poisoned();
    }

    /// This worker's contiguous share of `items`: the same one for the same count, so that a core
    /// meets its own weights again in every step.
    pub fn share(&self, items: usize) -> Range<usize> {
        let (size, index) = (self.shared.size, self.index);
        (items * index / size)..(items * (index + 1) / size)
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
        if size == 0 || size > 1024 {
            return Err(KernelError::config(format!(
                "{size} compute threads were asked for; it must be between 1 and 1024."
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
            started: Event::new(),
            finished: Event::new(),
            running: AtomicU32::new(0),
            arrived: AtomicU32::new(0),
            passed: Event::new(),
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

    /// Run `job` on every worker at once; returns when all have finished.
    pub fn run(&mut self, job: Job<'_>) -> Result<(), KernelError> {
        if std::process::id() != self.process {
            return Err(KernelError::Worker(
                "The engine was started before this process was forked: start it anew.".into(),
            ));
        }
        self.check()?;
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes. Nobody reads the job after `running` has reached
        // zero, which is awaited below on every path: `run_part` does not unwind.
        let job_for_ever = unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) };
        // SAFETY: all workers wait for `started`, so nobody else touches the cell.
        unsafe { *shared.job.get() = Some(job_for_ever) };
        let done = shared.finished.get();
        shared
            .running
            .store(shared.size as u32 - 1, Ordering::SeqCst);
        if shared.size > 1 {
            shared.started.advance();
        }
        shared.run_part(job, 0);
        if shared.size > 1 {
            shared.patience.wait(&shared.finished, done);
        }
        // SAFETY: all workers wait again.
        unsafe { *shared.job.get() = None };
        // The caller goes about its own business now.
        held::release();
        self.check()
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
        self.shared.started.advance();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// How many spin-loop hints take about `micros`: the hint's length differs tenfold among processors.
fn spins_within(micros: u64) -> u32 {
    const PROBE: u32 = 2000;
    let fastest = (0..3)
        .map(|_| {
            let start = Instant::now();
            (0..PROBE).for_each(|_| std::hint::spin_loop());
            start.elapsed()
        })
        .min()
        .unwrap_or(Duration::ZERO);
    let nanos = fastest.as_nanos().max(1) as u64;
    (micros * 1000 * u64::from(PROBE) / nanos).clamp(1, 1 << 20) as u32
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
            // Behind the advances of both others.
            while worker.index() == 2 && worker.shared.passed.get() < 2 {
                std::thread::yield_now();
            }
            worker.barrier();
        });
        assert!(error.unwrap_err().to_string().contains("broken kernel"));
    }

    #[test]
    fn idle_workers_park() {
        let mut pool = pool(2);
        pool.run(&|_| {}).unwrap();
        // The worker announces itself as a sleeper once it has stopped spinning.
        while pool.shared.started.sleepers.load(Ordering::SeqCst) == 0 {
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
