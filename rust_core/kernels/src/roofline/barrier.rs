//! Barrier latency of the worker pool.

use std::time::Duration;

use super::best_pass;
use crate::error::KernelError;
use crate::pool::Pool;
use crate::topology::Topology;

/// Barriers per pass: several times as many as a step of a 30-layer model has.
const BARRIERS: u32 = 1_000;

/// Seconds per barrier of the worker pool without load imbalance: mean over a pass, best pass.
pub fn measure_barrier(threads: Option<usize>, duration: Duration) -> Result<f64, KernelError> {
    let mut pool = Pool::new(threads, &Topology::detect())?;
    let best = best_pass(&mut pool, duration, &|worker| {
        for _ in 0..BARRIERS {
            worker.barrier();
        }
    })?;
    Ok(best.as_secs_f64() / f64::from(BARRIERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_takes_longer_with_two_workers_than_with_one() {
        let short = Duration::from_millis(1);
        let alone = measure_barrier(Some(1), short).unwrap();
        let together = measure_barrier(Some(2), short).unwrap();
        assert!(alone < together, "{alone} {together}");
    }
}
