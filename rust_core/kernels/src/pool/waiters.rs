//! Waiting for another thread: spin first, then park.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::sync::{AtomicU32, Condvar, Mutex};
use crate::amx::thread_tiles;

/// Threads that wait for a condition on atomics.
///
/// Whoever makes the condition true calls [`Waiters::wake`] afterwards. Both sides are sequentially consistent: either
/// the waiter sees the change after it has counted itself as a sleeper, or the waker sees that count.
pub(super) struct Waiters {
    sleepers: AtomicU32,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Waiters {
    pub fn new() -> Self {
        Self {
            sleepers: AtomicU32::new(0),
            lock: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    /// Whether a thread is parked.
    #[cfg(all(test, not(loom)))]
    pub fn sleeping(&self) -> bool {
        self.sleepers.load(Ordering::SeqCst) > 0
    }

    /// Let parked threads check their condition again.
    pub fn wake(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.woken.notify_all();
        }
    }

    /// Wait until `ready` returns true: spin at most `spins` times, then park. Returns whether spinning sufficed.
    pub fn wait(&self, spins: u32, ready: impl Fn() -> bool) -> bool {
        for _ in 0..spins {
            if ready() {
                return true;
            }
            std::hint::spin_loop();
        }
        // AMX GEMMs keep tile registers configured; a sleeping thread must not hold them.
        thread_tiles::release();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !ready() {
            guard = self
                .woken
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        false
    }

    /// Park until `ready` returns true, for at most `timeout`.
    pub fn wait_timeout(&self, timeout: Duration, ready: impl Fn() -> bool) {
        let end = Instant::now() + timeout;
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !ready() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.woken.wait_timeout(guard, left);
            (guard, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
