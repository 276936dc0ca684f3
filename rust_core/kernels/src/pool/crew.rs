//! Who takes part in a job, in one word: joining, leaving and the end of a phase exclude each other.

use std::sync::atomic::{AtomicU64, Ordering};

/// Workers of the largest pool.
pub(super) const MOST_WORKERS: usize = 1024;

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crew {
    /// Barriers that have been passed.
    pub phase: u32,
    /// Workers that run the job's closure: it lives until they are gone.
    pub inside: u32,
    /// Those among them for whom barriers wait, and who may take work.
    pub members: u32,
    /// Members that have come to the next barrier.
    pub arrived: u32,
    /// Whether workers may still come in.
    pub open: bool,
}

const COUNT_BITS: u32 = 10;
const COUNT_MASK: u64 = (1 << (COUNT_BITS + 1)) - 1;
const WIDTH: u32 = COUNT_BITS + 1;
const PHASE_BITS: u32 = 63 - 3 * WIDTH;

const _: () = assert!(MOST_WORKERS <= 1 << COUNT_BITS);

impl Crew {
    /// Nobody, between two jobs.
    pub const NOBODY: Self = Self {
        phase: 0,
        inside: 0,
        members: 0,
        arrived: 0,
        open: false,
    };

    fn pack(self) -> u64 {
        let phase = u64::from(self.phase) & ((1 << PHASE_BITS) - 1);
        let counts = u64::from(self.inside)
            | u64::from(self.members) << WIDTH
            | u64::from(self.arrived) << (2 * WIDTH);
        phase << (3 * WIDTH + 1) | counts << 1 | u64::from(self.open)
    }

    fn unpack(word: u64) -> Self {
        let count = |nth: u32| (word >> (1 + nth * WIDTH) & COUNT_MASK) as u32;
        Self {
            phase: (word >> (3 * WIDTH + 1)) as u32,
            inside: count(0),
            members: count(1),
            arrived: count(2),
            open: word & 1 == 1,
        }
    }

    /// The next phase if all members have arrived. The word holds 30 bits of the phase's number.
    fn meet(self) -> Self {
        if self.arrived < self.members || self.members == 0 {
            return self;
        }
        Self {
            phase: (self.phase + 1) & ((1 << PHASE_BITS) - 1),
            arrived: 0,
            ..self
        }
    }

    /// One more at the barrier.
    pub fn arrive(self) -> Self {
        let arrived = self.arrived + 1;
        Self { arrived, ..self }.meet()
    }

    /// One more inside, if it may come in; not yet a member.
    pub fn enter(self) -> Option<Self> {
        let inside = self.inside + 1;
        self.open.then_some(Self { inside, ..self })
    }

    /// One more member, who is there since the beginning of phase `phase`, if that is the current one.
    pub fn join(self, phase: u32) -> Option<Self> {
        let members = self.members + 1;
        (self.phase == phase).then_some(Self { members, ..self })
    }

    /// One member less, before it has arrived: who has arrived waits no longer if it was the last one missing.
    pub fn withdraw(self) -> Self {
        let members = self.members - 1;
        Self { members, ..self }.meet()
    }

    /// One less inside, who is no member.
    pub fn leave(self) -> Self {
        let inside = self.inside - 1;
        Self { inside, ..self }
    }
}

/// A crew that changes as a whole.
pub(super) struct Roll(AtomicU64);

impl Roll {
    pub fn new() -> Self {
        Self(AtomicU64::new(Crew::NOBODY.pack()))
    }

    pub fn get(&self) -> Crew {
        Crew::unpack(self.0.load(Ordering::SeqCst))
    }

    pub fn set(&self, crew: Crew) {
        self.0.store(crew.pack(), Ordering::SeqCst);
    }

    /// Change it if `change` yields something: what it was and what it is then.
    pub fn update(&self, change: impl Fn(Crew) -> Option<Crew>) -> Option<(Crew, Crew)> {
        let changed = |word| change(Crew::unpack(word)).map(Crew::pack);
        let before = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, changed)
            .ok()?;
        let before = Crew::unpack(before);
        Some((before, change(before)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_crew_is_what_it_was_packed_from(
            phase in 0u32..1 << PHASE_BITS, inside in 0u32..=1024, members in 0u32..=1024, arrived in 0u32..=1024,
            open: bool,
        ) {
            let crew = Crew { phase, inside, members, arrived, open };
            prop_assert_eq!(Crew::unpack(crew.pack()), crew);
        }
    }

    #[test]
    fn a_phase_ends_when_the_last_member_arrives_or_withdraws() {
        let two = Crew {
            phase: 7,
            inside: 2,
            members: 2,
            arrived: 0,
            open: true,
        };
        let one_there = two.arrive();
        assert_eq!((one_there.phase, one_there.arrived), (7, 1));
        assert_eq!(
            (one_there.arrive().phase, one_there.arrive().arrived),
            (8, 0)
        );
        let alone = one_there.withdraw();
        assert_eq!((alone.phase, alone.members, alone.arrived), (8, 1, 0));
        assert_eq!(two.withdraw().phase, 7);
    }

    #[test]
    fn nobody_joins_a_phase_that_is_over_or_a_job_that_is_closed() {
        let crew = Crew {
            phase: 3,
            inside: 2,
            members: 1,
            ..Crew::NOBODY
        };
        assert_eq!(crew.join(2), None);
        assert_eq!(crew.join(3).map(|crew| crew.members), Some(2));
        assert_eq!(crew.enter(), None);
        let open = Crew { open: true, ..crew };
        assert_eq!(open.enter().map(|crew| crew.inside), Some(3));
    }

    #[test]
    fn phases_wrap_within_their_bits() {
        let last = Crew {
            phase: (1 << PHASE_BITS) - 1,
            inside: 1,
            members: 1,
            ..Crew::NOBODY
        };
        assert_eq!(Crew::unpack(last.arrive().pack()).phase, 0);
    }
}
