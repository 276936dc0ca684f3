//! Optional timing of a step's phases, in nanoseconds per worker.
//!
//! Each worker has its own clock. A lap adds the time since the previous lap to the phase that just ended. A disabled lap
//! costs one predictable branch; an enabled one reads the monotonic clock (about 20 ns, about 200 times per step).

use std::cell::Cell;
use std::time::Instant;

/// What a worker does during a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Embedding look-up.
    Embed,
    /// Normalising and quantising activations.
    Prepare,
    /// Query, key and value projections, rotary positions, cache writes.
    Qkv,
    Attention,
    /// Output projection and residual.
    Output,
    /// Logits of experts, and their choice.
    Router,
    /// Gate and up projections and SwiGLU.
    GateUp,
    /// Down projection and residual.
    Down,
    LmHead,
    Sample,
    /// Waiting at barriers for the slowest worker.
    Wait,
}

impl Phase {
    /// Every phase and its name, in the order of a step.
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::Embed, "embed"),
        (Self::Prepare, "prepare"),
        (Self::Qkv, "qkv"),
        (Self::Attention, "attention"),
        (Self::Output, "output"),
        (Self::Router, "router"),
        (Self::GateUp, "gate_up"),
        (Self::Down, "down"),
        (Self::LmHead, "lm_head"),
        (Self::Sample, "sample"),
        (Self::Wait, "wait"),
    ];
}

/// One worker's times, summed over steps.
#[derive(Debug, Default)]
pub struct PhaseClock {
    /// End of the last lap; None while disabled.
    last: Cell<Option<Instant>>,
    nanos: [Cell<u64>; Phase::ALL.len()],
}

impl PhaseClock {
    /// Begin a step; laps are measured if `wanted`.
    pub fn start(&self, wanted: bool) {
        self.last.set(wanted.then(Instant::now));
    }

    /// End of `phase`.
    #[inline]
    pub fn lap(&self, phase: Phase) {
        if let Some(last) = self.last.get() {
            let now = Instant::now();
            let nanos = &self.nanos[phase as usize];
            nanos.set(nanos.get() + (now - last).as_nanos() as u64);
            self.last.set(Some(now));
        }
    }

    /// Nanoseconds of each phase since the last call, in the order of [`Phase::ALL`].
    pub fn take(&self) -> [u64; Phase::ALL.len()] {
        std::array::from_fn(|phase| self.nanos[phase].take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_are_summed_by_phase_and_only_when_enabled() {
        let clock = PhaseClock::default();
        clock.start(false);
        clock.lap(Phase::Down);
        assert_eq!(clock.take(), [0; Phase::ALL.len()]);
        clock.start(true);
        let begin = Instant::now();
        while begin.elapsed().as_micros() < 10 {}
        clock.lap(Phase::Down);
        clock.lap(Phase::Wait);
        let nanos = clock.take();
        assert!(nanos[Phase::Down as usize] >= 10_000);
        assert_eq!(nanos[Phase::Attention as usize], 0);
        assert_eq!(clock.take(), [0; Phase::ALL.len()]);
    }

    #[test]
    fn phases_are_listed_in_the_order_of_their_discriminants() {
        for (index, (phase, _)) in Phase::ALL.into_iter().enumerate() {
            assert_eq!(phase as usize, index);
        }
    }
}
