//! The state that the threads of a pool share, and what a worker thread does with it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::active_workers::{ActiveWorkers, AtomicActiveWorkers};
use super::spin_budget::SpinBudget;
use super::sync::{AtomicBool, AtomicU32, Mutex, UnsafeCell};
use super::waiters::Waiters;
use super::worker::Worker;

/// The closure that all workers of a job run.
pub(super) type Job<'a> = &'a (dyn Fn(&Worker<'_>) + Sync + 'a);

pub(super) struct Shared {
    pub size: usize,
    /// Spins of a worker between two jobs.
    idle_spins: u32,
    pub spin_budget: SpinBudget,
    /// The workers of the current job.
    pub active: AtomicActiveWorkers,
    /// Threads that wait for a change of `active`: at a barrier, at the end of a job, for a yielded core.
    pub active_changed: Waiters,
    /// Incremented to wake idle workers: a job has begun, a yielded core was released, or the pool ends.
    wakes: AtomicU32,
    pub idle: Waiters,
    /// Number of the current or last job; the lowest bit is set if it is elastic.
    pub job_number: AtomicU32,
    /// Unreleased requests for the last worker's core.
    pub yield_requests: AtomicU32,
    /// Whether the last worker runs a job's closure.
    pub last_is_running: AtomicBool,
    /// Written by the caller while no worker runs a closure, read by running workers.
    job: UnsafeCell<Option<Job<'static>>>,
    stop: AtomicBool,
    poisoned: AtomicBool,
    panic: Mutex<Option<String>>,
}

// SAFETY: `job` is the only field that is not Sync. It is written only by `begin` and `end` (called through
// `&mut Pool`, so by one thread) while no worker is running, and published by the SeqCst `active`.
unsafe impl Sync for Shared {}
// SAFETY: as above; a job is Sync, so a reference to it may cross threads.
unsafe impl Send for Shared {}

/// Whether the job with this number is elastic.
pub(super) fn is_elastic(job_number: u32) -> bool {
    job_number & 1 == 1
}

/// Panic payload of workers that leave a poisoned barrier without having failed themselves.
struct Poisoned;

impl Shared {
    pub fn new(size: usize, idle_spins: u32, barrier_spins: u32) -> Self {
        Self {
            size,
            idle_spins,
            spin_budget: SpinBudget::new(barrier_spins),
            active: AtomicActiveWorkers::new(),
            active_changed: Waiters::new(),
            wakes: AtomicU32::new(0),
            idle: Waiters::new(),
            job_number: AtomicU32::new(0),
            yield_requests: AtomicU32::new(0),
            last_is_running: AtomicBool::new(false),
            job: UnsafeCell::new(None),
            stop: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
            panic: Mutex::new(None),
        }
    }

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
        self.active_changed.wake();
    }

    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::SeqCst)
    }

    /// The message of the first panic; None if no worker panicked.
    pub fn panic_message(&self) -> Option<String> {
        if !self.is_poisoned() {
            return None;
        }
        let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        Some(panic.as_deref().unwrap_or("no message").to_owned())
    }

    pub fn leave_if_poisoned(&self) {
        if self.is_poisoned() {
            // Not `panic_any`, which would run the panic hook: only the worker that failed is reported.
            resume_unwind(Box::new(Poisoned));
        }
    }

    /// Change the active workers; wake the threads waiting for that if an epoch completed or a worker left.
    pub fn change(&self, change: impl Fn(ActiveWorkers) -> ActiveWorkers) {
        let changed = self.active.update(|active| Some(change(active)));
        if let Some((before, after)) = changed
            && (after.epoch, after.running) != (before.epoch, before.running)
        {
            self.active_changed.wake();
        }
    }

    /// Whether worker `index` is to yield its core now.
    pub fn must_yield(&self, index: usize) -> bool {
        index > 0 && index + 1 == self.size && self.yield_requests.load(Ordering::SeqCst) > 0
    }

    /// Start a job: set its closure and wake the idle workers.
    ///
    /// # Safety
    /// No worker is running, and the caller calls [`Shared::end`] before `job` ends its life.
    pub unsafe fn begin(&self, job: Job<'_>, elastic: bool) {
        // SAFETY: only the lifetime changes. Only running workers read the job, and `end` waits until there are none.
        let job_for_ever = unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) };
        // SAFETY: no worker is running, so no other thread accesses the cell.
        self.job
            .with_mut(|job| unsafe { *job = Some(job_for_ever) });
        let count = if elastic { 1 } else { self.size as u32 };
        self.active.store(ActiveWorkers {
            epoch: 0,
            running: count,
            registered: count,
            arrived: 0,
            open: elastic,
        });
        // After `active`: workers that are counted as running from the beginning start on seeing this number.
        let last = self.job_number.load(Ordering::SeqCst);
        let next = (last | 1).wrapping_add(1) | u32::from(elastic);
        self.job_number.store(next, Ordering::SeqCst);
        if self.size > 1 {
            self.wake_idle();
        }
    }

    /// Close the job and wait until only the caller is running.
    pub fn end(&self) {
        self.change(|active| ActiveWorkers {
            open: false,
            ..active
        });
        let alone = || self.active.load().running == 1;
        self.spin_budget.wait(&self.active_changed, alone);
        self.active.store(ActiveWorkers::NONE);
        // SAFETY: no other worker is running, and none can enter.
        self.job.with_mut(|job| unsafe { *job = None });
    }

    /// Run a job's closure as worker `index`. A panic poisons the pool and does not unwind out of here.
    pub fn run_closure(&self, job: Job<'_>, index: usize, elastic: bool, registered: bool) {
        let worker = Worker::new(self, index, elastic, registered);
        let run = || {
            worker.catch_up();
            job(&worker);
        };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
            self.poison(payload.as_ref());
        }
        if worker.is_registered() {
            self.change(ActiveWorkers::deregister);
        }
    }

    /// Take part in the current job if there is one for worker `index`. `last` is the last job that is not elastic
    /// and that this worker has run.
    fn take_part(&self, index: usize, last: &mut u32) {
        let job_number = self.job_number.load(Ordering::SeqCst);
        let elastic = is_elastic(job_number);
        if elastic {
            if self.must_yield(index) || self.active.update(ActiveWorkers::enter).is_none() {
                return;
            }
        } else if job_number == *last {
            return; // already run, or there is none
        } else {
            // Counted as running from the beginning: the job does not end before this worker has run.
            *last = job_number;
        }
        self.note_running(index, true);
        // SAFETY: this worker is counted as running: the job was written before, and stays until the worker leaves.
        let job = self.job.with(|job| unsafe { *job });
        let job = job.expect("a job that has begun");
        self.run_closure(job, index, elastic, !elastic);
        self.note_running(index, false);
        self.change(ActiveWorkers::leave);
    }

    fn note_running(&self, index: usize, running: bool) {
        if index + 1 == self.size {
            self.last_is_running.store(running, Ordering::SeqCst);
        }
    }

    /// The main loop of worker thread `index`.
    pub fn work(&self, index: usize) {
        let (mut seen, mut last) = (0, 0);
        loop {
            let spins = if self.must_yield(index) {
                0
            } else {
                self.idle_spins
            };
            let woken = || self.wakes.load(Ordering::SeqCst) != seen;
            self.idle.wait(spins, woken);
            // Before the rest of the state is read: a later change increments `wakes` again.
            seen = self.wakes.load(Ordering::SeqCst);
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            self.take_part(index, &mut last);
        }
    }

    /// Let idle workers check the state again.
    pub fn wake_idle(&self) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        self.idle.wake();
    }

    /// Make the worker threads end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake_idle();
    }
}
