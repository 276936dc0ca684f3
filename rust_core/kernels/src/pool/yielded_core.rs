//! Yielding the core of a pool's last worker to another thread of this process.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::shared::{Shared, is_elastic};

/// The longest wait for a core. A worker yields between two items, which take much less unless it is preempted.
const YIELD_TIMEOUT: Duration = Duration::from_millis(2);

/// Makes a pool's last worker yield its core.
#[derive(Clone)]
pub struct CoreYielder(Arc<Shared>);

impl CoreYielder {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Make the last worker leave its core after the item it computes, and wait for that, at most `YIELD_TIMEOUT`.
    /// Does not wait if the job is not elastic or the pool has one worker.
    pub fn yield_core(&self) -> YieldedCore {
        let shared = &*self.0;
        shared.yield_requests.fetch_add(1, Ordering::SeqCst);
        let left = || {
            !shared.last_is_running.load(Ordering::SeqCst)
                || !is_elastic(shared.job_number.load(Ordering::SeqCst))
        };
        if shared.size > 1 {
            shared.active_changed.wait_timeout(YIELD_TIMEOUT, left);
        }
        YieldedCore(Arc::clone(&self.0))
    }
}

/// A yielded core. Its worker returns when this is dropped.
pub struct YieldedCore(pub(super) Arc<Shared>);

impl Drop for YieldedCore {
    fn drop(&mut self) {
        if self.0.yield_requests.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.wake_idle();
        }
    }
}
