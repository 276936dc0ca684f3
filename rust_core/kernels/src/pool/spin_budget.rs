//! How long to spin before parking.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::waiters::Waiters;

/// Number of spins at a barrier before the waiter parks, adapted to earlier waits.
///
/// On an idle machine a peer arrives within microseconds, and spinning is right. When another process occupies the
/// peer's core, every microsecond of spinning takes time from a thread that could work, perhaps from that very peer.
/// A wait that ended in parking quarters the budget; one that did not lengthens it by an eighth.
pub(super) struct SpinBudget {
    spins: AtomicU32,
    max: u32,
}

impl SpinBudget {
    pub fn new(max: u32) -> Self {
        Self {
            spins: AtomicU32::new(max),
            max,
        }
    }

    /// [`Waiters::wait`] within the budget.
    pub fn wait(&self, waiters: &Waiters, ready: impl Fn() -> bool) {
        let spins = self.spins.load(Ordering::Relaxed);
        let next = if waiters.wait(spins, ready) {
            (spins + spins / 8 + 1).min(self.max)
        } else {
            (spins / 4).max(self.max / 32)
        };
        self.spins.store(next, Ordering::Relaxed);
    }
}

/// The number of spin-loop hints that take about `micros`: the length of one differs tenfold among processors.
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
