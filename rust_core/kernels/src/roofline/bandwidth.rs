//! Aggregate memory read bandwidth of the workers.

use std::hint::black_box;
use std::time::Duration;

use super::best_pass;
use crate::arena::{Buffer, Pages};
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::pool::Pool;
use crate::simd::{LANES, Lanes, by_level};
use crate::topology::Topology;

/// Bytes per second at which `threads` workers together read a buffer of `bytes` repeatedly, each
/// its own part, for about `duration`; best pass.
///
/// A buffer that fits the caches is read from the caches: choose a larger footprint to measure main memory.
pub fn measure_read_bandwidth(
    bytes: usize,
    threads: Option<usize>,
    pages: Pages,
    duration: Duration,
) -> Result<f64, KernelError> {
    let mut pool = Pool::new(threads, &Topology::detect())?;
    let level = Level::choose("auto")?;
    let floats = (bytes / size_of::<f32>()).max(pool.size() * STRIP);
    let buffer = Buffer::<f32>::with_pages(floats, pages)?;
    // First touch by the worker that reads the part; unwritten pages would all map to the zero page.
    pool.run(&|worker| {
        let part = worker.share(floats);
        // SAFETY: this worker's part only.
        unsafe { buffer.slice_mut(part.start, part.len()) }.fill(1.0);
    })?;
    let best = best_pass(&mut pool, duration, &|worker| {
        let part = worker.share(floats);
        // SAFETY: no thread writes during the pass; the level was chosen for this machine.
        let sum = unsafe { read_all(level, buffer.slice(part.start, part.len())) };
        black_box(sum);
    })?;
    Ok((floats * size_of::<f32>()) as f64 / best.as_secs_f64())
}

/// Vectors read per loop iteration, each added to a separate sum.
const SUMS: usize = 8;

/// Floats read per loop iteration.
const STRIP: usize = SUMS * LANES;

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn read_all_body<L: Lanes>(values: &[f32]) -> f32 {
    // SAFETY: whole strips inside the slice; the level's instructions are enabled by `by_level`.
    unsafe {
        let mut sums = [L::splat(0.0); SUMS];
        for strip in values.chunks_exact(STRIP) {
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add(L::load(strip.as_ptr().add(at * LANES)));
            }
        }
        sums.into_iter().map(|sum| sum.sum()).sum()
    }
}

by_level! {
    /// # Safety
    /// The machine has the level.
    unsafe fn read_all(values: &[f32]) -> f32 = read_all_body;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_footprint_and_page_size_is_measured() {
        for (bytes, pages) in [
            (0, Pages::Small),
            (1 << 20, Pages::Small),
            (3 << 20, Pages::Huge),
        ] {
            let rate = measure_read_bandwidth(bytes, Some(2), pages, Duration::from_millis(1));
            assert!(rate.unwrap() > 0.0);
        }
    }

    #[test]
    fn every_float_is_read() {
        let values: Vec<f32> = (0..5 * STRIP).map(|value| value as f32).collect();
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            // SAFETY: the machine has the level.
            let sum = unsafe { read_all(level, &values) };
            assert_eq!(sum, (values.len() * (values.len() - 1) / 2) as f32);
        }
    }
}
