//! Worker threads that run one closure together, with barriers inside it.
//!
//! Hot path. A step is one job; its phases are separated by [`Worker::barrier`]. The calling thread is worker 0. A
//! waiter spins for at most `SPIN_US` and then parks: when another process occupies a peer's core, spinning on would
//! only take more time from it (see `spin_budget.rs`). Between two steps of a running engine, while the caller does its
//! bookkeeping, workers spin for `IDLE_SPIN_US`. A barrier among running peers costs about a microsecond, a parked
//! one a wake-up of some tens. Do not add locks to the fast path.
//!
//! In a job of [`Pool::run`] all workers take part from beginning to end. In a job of [`Pool::run_elastic`] every
//! worker but the caller may join late and leave early: a thread that is about to compute on this machine asks for the
//! last worker's core ([`CoreYielder`]) and gets it between two items. Preempting the worker would instead delay an
//! item that all workers wait for. A worker that joins (again) runs the closure from the beginning without taking work
//! and without waiting at barriers, until it has reached the others' epoch; then it registers.
//!
//! A worker that panics poisons the pool: all workers leave their barriers, and the job's caller gets an error, as does
//! every later one.

mod active_workers;
mod shared;
mod spin_budget;
#[cfg(test)]
mod tests;
mod waiters;
mod worker;
mod yielded_core;

use std::sync::Arc;
use std::thread::JoinHandle;

use self::active_workers::MAX_WORKERS;
use self::shared::{Job, Shared};
use self::spin_budget::spins_within;
pub use self::worker::Worker;
pub use self::yielded_core::{CoreYielder, YieldedCore};
use crate::amx::thread_tiles;
use crate::error::KernelError;
use crate::topology::{Topology, pin_current_thread};

/// The longest time a waiter spins before it parks.
const SPIN_US: u64 = 200;

/// How long a worker spins for the next job: longer than a caller takes between two, because a wake-up costs as much as
/// a fifth of a small model's step.
const IDLE_SPIN_US: u64 = 300;

/// Threads that wait for jobs; dropping the pool ends them.
pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Id of the process that started the threads: a forked child has the pool's memory but none of its threads.
    process: u32,
}

impl Pool {
    /// Number of workers, the caller included, of a pool with this setting (None: as many as the topology says).
    pub fn size_for(threads: Option<usize>, topology: &Topology) -> Result<usize, KernelError> {
        let size = threads.unwrap_or_else(|| topology.default_threads());
        if size == 0 || size > MAX_WORKERS {
            return Err(KernelError::config(format!(
                "{size} compute threads were requested; the number must be between 1 and {MAX_WORKERS}."
            )));
        }
        Ok(size)
    }

    /// Start the workers; see [`Self::size_for`].
    pub fn new(threads: Option<usize>, topology: &Topology) -> Result<Self, KernelError> {
        let size = Self::size_for(threads, topology)?;
        // Otherwise a spinning thread keeps a peer from running.
        let can_spin = topology.can_spin(size);
        let spins_for = |micros| if can_spin { spins_within(micros) } else { 0 };
        let barrier_spins = spins_for(SPIN_US);
        let shared = Arc::new(Shared::new(size, spins_for(IDLE_SPIN_US), barrier_spins));
        let mut pool = Self {
            shared: Arc::clone(&shared),
            threads: Vec::with_capacity(size - 1),
            process: std::process::id(),
        };
        for index in 1..size {
            let shared = Arc::clone(&shared);
            // The caller's thread is not ours to pin.
            let core = topology.pinned_core(size, index);
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

    /// A handle with which any thread can make the last worker yield its core.
    pub fn core_yielder(&self) -> CoreYielder {
        CoreYielder::new(Arc::clone(&self.shared))
    }

    /// Run `job` on every worker at once; returns when all have finished.
    pub fn run(&mut self, job: Job<'_>) -> Result<(), KernelError> {
        self.run_kind(job, false)
    }

    /// Run `job` on the caller and on the workers that are available: they may join late, leave and return, or not
    /// join at all. Returns when all have left.
    ///
    /// Between two barriers, workers take all work item by item from counters, only while they
    /// [may](Worker::may_work), and the counters stay exhausted; the closure reads and writes nothing else that an
    /// epoch changes.
    pub fn run_elastic(&mut self, job: Job<'_>) -> Result<(), KernelError> {
        self.run_kind(job, true)
    }

    fn run_kind(&mut self, job: Job<'_>, elastic: bool) -> Result<(), KernelError> {
        if std::process::id() != self.process {
            return Err(KernelError::Worker(
                "This process was forked after the engine was started: start a new engine in it."
                    .into(),
            ));
        }
        self.check()?;
        // SAFETY: `&mut self` and `end` below, which is reached on every path because `run_closure` does not unwind.
        unsafe { self.shared.begin(job, elastic) };
        self.shared.run_closure(job, 0, elastic, true);
        self.shared.end();
        // The caller's thread does other work now.
        thread_tiles::release();
        self.check()
    }

    fn check(&self) -> Result<(), KernelError> {
        match self.shared.panic_message() {
            Some(panic) => Err(KernelError::Worker(format!(
                "A compute thread failed ({panic}): load the model again."
            ))),
            None => Ok(()),
        }
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
        self.shared.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
