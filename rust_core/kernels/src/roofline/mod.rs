//! What this machine can do at most, measured: read bandwidth, peaks of its instructions, barrier latency.
//!
//! The ceilings that a benchmark's results are compared with. All run on a pool like the executor's and keep
//! the best of their passes, because interference only ever slows a pass down.

mod bandwidth;
mod barrier;
mod peak;

use std::time::{Duration, Instant};

pub use bandwidth::measure_read_bandwidth;
pub use barrier::measure_barrier;
pub use peak::{Instruction, measure_int8_dot, measure_peak};

use crate::error::KernelError;
use crate::pool::{Pool, Worker};

/// The shortest of the passes that fit into about `duration`; at least one.
fn best_pass(
    pool: &mut Pool,
    duration: Duration,
    pass: &(dyn Fn(&Worker<'_>) + Sync),
) -> Result<Duration, KernelError> {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while best == Duration::MAX || begin.elapsed() < duration {
        let start = Instant::now();
        pool.run(pass)?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}
