//! Waiting for another thread: spinning first, then parked.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::amx::thread_tiles;

/// Threads that wait until something that atomics say is so.
///
/// Whoever makes it so calls [`Waiters::wake`] afterwards. Both sides are sequentially consistent: either the waiter
/// sees the change after it has announced itself, or the other sees the announcement.
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

    /// Whether anybody is parked.
    #[cfg(test)]
    pub fn sleeping(&self) -> bool {
        self.sleepers.load(Ordering::SeqCst) > 0
    }

    /// What waiters wait for may have come.
    pub fn wake(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.woken.notify_all();
        }
    }

    /// Return once `come` says so; says itself whether spinning was enough.
    pub fn wait(&self, spins: u32, come: impl Fn() -> bool) -> bool {
        for _ in 0..spins {
            if come() {
                return true;
            }
            std::hint::spin_loop();
        }
        // Products hold tile registers on some machines; whoever sleeps gives them back.
        thread_tiles::release();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !come() {
            guard = self
                .woken
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        false
    }

    /// Sleep until `come` says so, for at most `longest`.
    pub fn sleep(&self, longest: Duration, come: impl Fn() -> bool) {
        let end = Instant::now() + longest;
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !come() {
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

/// How long to spin at barriers, learnt from how it went.
///
/// On a machine of one's own a peer arrives within microseconds, and spinning is right. When another
/// process has the peer's core, every microsecond of spinning is taken from somebody who could work,
/// perhaps from that very peer. A wait that ended in parking quarters the next ones; each that did not
/// lengthens them by an eighth.
pub(super) struct Patience {
    spins: AtomicU32,
    longest: u32,
}

impl Patience {
    pub fn new(longest: u32) -> Self {
        Self {
            spins: AtomicU32::new(longest),
            longest,
        }
    }

    pub fn wait(&self, waiters: &Waiters, come: impl Fn() -> bool) {
        let spins = self.spins.load(Ordering::Relaxed);
        let next = if waiters.wait(spins, come) {
            (spins + spins / 8 + 1).min(self.longest)
        } else {
            (spins / 4).max(self.longest / 32)
        };
        self.spins.store(next, Ordering::Relaxed);
    }
}

/// How many spin-loop hints take about `micros`: the hint's length differs tenfold among processors.
pub(super) fn spins_within(micros: u64) -> u32 {
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
