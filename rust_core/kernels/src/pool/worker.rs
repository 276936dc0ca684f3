//! What a job's closure sees of the worker that runs it.

use std::cell::Cell;
use std::ops::Range;

use super::active_workers::ActiveWorkers;
use super::shared::Shared;

/// A worker's view of the job it runs.
pub struct Worker<'a> {
    index: usize,
    shared: &'a Shared,
    elastic: bool,
    /// Barriers that this worker has passed in this run of the closure.
    epoch: Cell<u32>,
    /// Whether barriers wait for this worker.
    registered: Cell<bool>,
    /// Whether it has yielded its core in this run. It registers again only by running the closure anew.
    yielded: Cell<bool>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Shared, index: usize, elastic: bool, registered: bool) -> Self {
        Self {
            index,
            shared,
            elastic,
            epoch: Cell::new(0),
            registered: Cell::new(registered),
            yielded: Cell::new(false),
        }
    }
}

impl Worker<'_> {
    /// Position among the workers, [0, size).
    pub fn index(&self) -> usize {
        self.index
    }

    pub fn size(&self) -> usize {
        self.shared.size
    }

    /// Whether workers may join and leave during the job, so that fixed shares of the work are not possible.
    pub fn is_elastic(&self) -> bool {
        self.elastic && self.shared.size > 1
    }

    /// Whether the next barrier waits for this worker: it is in the same epoch as the other registered workers.
    pub fn is_registered(&self) -> bool {
        self.registered.get()
    }

    /// Whether this worker may take (more) work of the current epoch: it is registered and need not yield its core.
    pub fn may_work(&self) -> bool {
        self.is_registered() && !self.must_yield()
    }

    fn must_yield(&self) -> bool {
        self.elastic && self.shared.must_yield(self.index)
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn is_poisoned(&self) -> bool {
        self.shared.is_poisoned()
    }

    /// Wait until every registered worker has arrived. Writes before the barrier are visible to all after it.
    pub fn barrier(&self) {
        let shared = self.shared;
        if shared.size == 1 {
            return;
        }
        shared.leave_if_poisoned();
        let epoch = self.epoch.replace(self.epoch.get() + 1);
        if !self.registered.get() {
            self.catch_up();
        } else if self.must_yield() {
            self.registered.set(false);
            self.yielded.set(true);
            shared.change(ActiveWorkers::deregister);
        } else {
            shared.change(ActiveWorkers::arrive);
            let passed = || shared.active.load().epoch != epoch || shared.is_poisoned();
            shared.spin_budget.wait(&shared.active_changed, passed);
        }
        shared.leave_if_poisoned();
    }

    /// Register if this worker has reached the epoch of the others.
    pub(super) fn catch_up(&self) {
        if self.registered.get() || self.yielded.get() || self.must_yield() {
            return;
        }
        let register = |active: ActiveWorkers| active.register(self.epoch.get());
        self.registered
            .set(self.shared.active.update(register).is_some());
    }

    /// This worker's contiguous share of `items`. It is the same for the same count, so that a core finds its own
    /// weights in its cache in every step. Not for elastic jobs, where the share's worker may be absent.
    pub fn share(&self, items: usize) -> Range<usize> {
        let (size, index) = (self.shared.size, self.index);
        debug_assert!(!self.is_elastic());
        (items * index / size)..(items * (index + 1) / size)
    }
}
