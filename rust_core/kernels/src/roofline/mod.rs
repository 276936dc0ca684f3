//! Measured machine limits for the roofline: memory read bandwidth, peak instruction throughput, barrier latency.
//!
//! Benchmark results are compared with these. All measurements run on a worker pool like the executor's and report
//! the best pass, because interference can only slow a pass down.

mod bandwidth;
mod barrier;
mod peak;

use std::time::{Duration, Instant};

pub use bandwidth::measure_read_bandwidth;
pub use barrier::measure_barrier;
pub use peak::{Instruction, measure_int8_dot, measure_peak};

use crate::error::KernelError;
use crate::pool::{Pool, Worker};

/// Run passes for about `duration`, at least one, and return the shortest.
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
