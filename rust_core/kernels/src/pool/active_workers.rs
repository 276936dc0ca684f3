//! The workers that take part in a job, packed into one atomic word, so that registering, leaving and completing an
//! epoch exclude one another.

use std::sync::atomic::Ordering;

use super::sync::AtomicU64;

/// Workers of the largest pool.
pub(super) const MAX_WORKERS: usize = 1024;

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ActiveWorkers {
    /// Barriers that have been passed, modulo `2^EPOCH_BITS`.
    pub epoch: u32,
    /// Workers that run the job's closure. The closure must live until they have left.
    pub running: u32,
    /// Running workers that barriers wait for and that may take work.
    pub registered: u32,
    /// Registered workers that have arrived at the next barrier.
    pub arrived: u32,
    /// Whether further workers may enter.
    pub open: bool,
}

const COUNT_BITS: u32 = 10;
const COUNT_MASK: u64 = (1 << (COUNT_BITS + 1)) - 1;
const WIDTH: u32 = COUNT_BITS + 1;
const EPOCH_BITS: u32 = 63 - 3 * WIDTH;

const _: () = assert!(MAX_WORKERS <= 1 << COUNT_BITS);

impl ActiveWorkers {
    /// The state between two jobs.
    pub const NONE: Self = Self {
        epoch: 0,
        running: 0,
        registered: 0,
        arrived: 0,
        open: false,
    };

    fn pack(self) -> u64 {
        let epoch = u64::from(self.epoch) & ((1 << EPOCH_BITS) - 1);
        let counts = u64::from(self.running)
            | u64::from(self.registered) << WIDTH
            | u64::from(self.arrived) << (2 * WIDTH);
        epoch << (3 * WIDTH + 1) | counts << 1 | u64::from(self.open)
    }

    fn unpack(word: u64) -> Self {
        let count = |nth: u32| (word >> (1 + nth * WIDTH) & COUNT_MASK) as u32;
        Self {
            epoch: (word >> (3 * WIDTH + 1)) as u32,
            running: count(0),
            registered: count(1),
            arrived: count(2),
            open: word & 1 == 1,
        }
    }

    /// Begin the next epoch if all registered workers have arrived.
    fn complete_epoch(self) -> Self {
        if self.arrived < self.registered || self.registered == 0 {
            return self;
        }
        Self {
            epoch: (self.epoch + 1) & ((1 << EPOCH_BITS) - 1),
            arrived: 0,
            ..self
        }
    }

    /// A registered worker arrives at the barrier.
    pub fn arrive(self) -> Self {
        let arrived = self.arrived + 1;
        Self { arrived, ..self }.complete_epoch()
    }

    /// A worker begins to run the closure, not yet registered; None if the job is closed.
    pub fn enter(self) -> Option<Self> {
        let running = self.running + 1;
        self.open.then_some(Self { running, ..self })
    }

    /// A running worker that has passed `epoch` barriers registers; None if the others are in another epoch.
    pub fn register(self, epoch: u32) -> Option<Self> {
        let registered = self.registered + 1;
        (self.epoch == epoch).then_some(Self { registered, ..self })
    }

    /// A registered worker that has not arrived deregisters. This completes the epoch if it was the last one missing.
    pub fn deregister(self) -> Self {
        let registered = self.registered - 1;
        Self { registered, ..self }.complete_epoch()
    }

    /// A worker that is not registered stops running the closure.
    pub fn leave(self) -> Self {
        let running = self.running - 1;
        Self { running, ..self }
    }
}

/// An [`ActiveWorkers`] that is read and changed atomically.
pub(super) struct AtomicActiveWorkers(AtomicU64);

impl AtomicActiveWorkers {
    pub fn new() -> Self {
        Self(AtomicU64::new(ActiveWorkers::NONE.pack()))
    }

    pub fn load(&self) -> ActiveWorkers {
        ActiveWorkers::unpack(self.0.load(Ordering::SeqCst))
    }

    pub fn store(&self, active: ActiveWorkers) {
        self.0.store(active.pack(), Ordering::SeqCst);
    }

    /// Replace the state by what `change` returns; None, and no change, if that is None. Returns the states before and
    /// after.
    pub fn update(
        &self,
        change: impl Fn(ActiveWorkers) -> Option<ActiveWorkers>,
    ) -> Option<(ActiveWorkers, ActiveWorkers)> {
        let changed = |word| change(ActiveWorkers::unpack(word)).map(ActiveWorkers::pack);
        let before = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, changed)
            .ok()?;
        let before = ActiveWorkers::unpack(before);
        Some((before, change(before)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unpacking_inverts_packing(
            epoch in 0u32..1 << EPOCH_BITS,
            running in 0u32..=1024,
            registered in 0u32..=1024,
            arrived in 0u32..=1024,
            open: bool,
        ) {
            let active = ActiveWorkers { epoch, running, registered, arrived, open };
            prop_assert_eq!(ActiveWorkers::unpack(active.pack()), active);
        }
    }

    #[test]
    fn an_epoch_completes_when_the_last_registered_worker_arrives_or_deregisters() {
        let two = ActiveWorkers {
            epoch: 7,
            running: 2,
            registered: 2,
            arrived: 0,
            open: true,
        };
        let one_arrived = two.arrive();
        assert_eq!((one_arrived.epoch, one_arrived.arrived), (7, 1));
        assert_eq!(
            (one_arrived.arrive().epoch, one_arrived.arrive().arrived),
            (8, 0)
        );
        let alone = one_arrived.deregister();
        assert_eq!((alone.epoch, alone.registered, alone.arrived), (8, 1, 0));
        assert_eq!(two.deregister().epoch, 7);
    }

    #[test]
    fn no_worker_registers_in_a_past_epoch_or_enters_a_closed_job() {
        let active = ActiveWorkers {
            epoch: 3,
            running: 2,
            registered: 1,
            ..ActiveWorkers::NONE
        };
        assert_eq!(active.register(2), None);
        assert_eq!(active.register(3).map(|active| active.registered), Some(2));
        assert_eq!(active.enter(), None);
        let open = ActiveWorkers {
            open: true,
            ..active
        };
        assert_eq!(open.enter().map(|active| active.running), Some(3));
    }

    #[test]
    fn epochs_wrap_within_their_bits() {
        let last = ActiveWorkers {
            epoch: (1 << EPOCH_BITS) - 1,
            running: 1,
            registered: 1,
            ..ActiveWorkers::NONE
        };
        assert_eq!(ActiveWorkers::unpack(last.arrive().pack()).epoch, 0);
    }
}
