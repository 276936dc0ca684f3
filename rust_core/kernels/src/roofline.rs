//! What this machine can do at most: read bandwidth and integer dot-product rate, measured.
//!
//! The ceilings that a benchmark's results are compared with. Both run on a pool like the executor's and
//! keep the best of their passes, because interference only ever slows a pass down.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::arena::Buffer;
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::pool::Pool;
use crate::simd::{LANES, Lanes, by_level};
use crate::topology::Topology;

/// Bytes per second at which `threads` workers together read a buffer of `bytes` over and over, each
/// its own part, for about `duration`; best pass.
pub fn measure_read_bandwidth(
    bytes: usize,
    threads: Option<usize>,
    duration: Duration,
) -> Result<f64, KernelError> {
    let mut pool = Pool::new(threads, &Topology::detect())?;
    let level = Level::choose("auto")?;
    let floats = (bytes / size_of::<f32>()).max(pool.size() * STRIP);
    let buffer = Buffer::<f32>::new(floats)?;
    // Pages are mapped by whoever writes them first; unwritten ones would all be one zero page.
    pool.run(&|worker| {
        let part = worker.share(floats);
        // SAFETY: this worker's part alone.
        unsafe { buffer.slice_mut(part.start, part.len()) }.fill(1.0);
    })?;
    best_pass(
        &mut pool,
        duration,
        (floats * size_of::<f32>()) as f64,
        &|worker| {
            let part = worker.share(floats);
            // SAFETY: nobody writes any more; the level was chosen for this machine.
            let sum = unsafe { read_all(level, buffer.slice(part.start, part.len())) };
            black_box(sum);
        },
    )
}

/// Operations (a multiplication and an addition are two) per second of the dispatch level's integer
/// dot-product instruction on `threads` workers, for about `duration`; best pass. Portable code has no
/// such instruction and is measured on 32-bit products.
pub fn measure_int8_dot(threads: Option<usize>, duration: Duration) -> Result<f64, KernelError> {
    const ROUNDS: usize = 200_000;
    let mut pool = Pool::new(threads, &Topology::detect())?;
    let level = Level::choose("auto")?;
    let operations = match level {
        Level::Amx | Level::Avx512 => 2 * 64,
        Level::Avx2 => 2 * 32,
        Level::Portable => 2 * LANES,
    } * CHAINS
        * ROUNDS
        * pool.size();
    best_pass(&mut pool, duration, operations as f64, &|_| {
        match level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was chosen for this machine.
            Level::Amx | Level::Avx512 => unsafe { dot_avx512(ROUNDS) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx2 => unsafe { dot_avx2(ROUNDS) },
            _ => dot_portable(ROUNDS),
        }
    })
}

fn best_pass(
    pool: &mut Pool,
    duration: Duration,
    amount: f64,
    pass: &(dyn Fn(&crate::pool::Worker<'_>) + Sync),
) -> Result<f64, KernelError> {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while best == Duration::MAX || begin.elapsed() < duration {
        let start = Instant::now();
        pool.run(pass)?;
        best = best.min(start.elapsed());
    }
    Ok(amount / best.as_secs_f64())
}

/// Floats read by one turn of the loop.
const STRIP: usize = 8 * LANES;

#[inline(always)]
unsafe fn read_all_body<L: Lanes>(values: &[f32]) -> f32 {
    // SAFETY: whole strips inside the slice; the level's instructions are enabled by `by_level`.
    unsafe {
        let mut sums = [L::splat(0.0); 8];
        for strip in values.chunks_exact(STRIP) {
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add(L::load(strip.as_ptr().add(at * LANES)));
            }
        }
        sums.into_iter().map(|sum| sum.sum()).sum()
    }
}

by_level! {
    unsafe fn read_all(values: &[f32]) -> f32 = read_all_body;
}

/// Independent accumulators: enough to cover the latency of any of these instructions.
const CHAINS: usize = 16;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dot_avx512(rounds: usize) {
    use std::arch::x86_64::*;
    let mut sums = [_mm512_setzero_si512(); CHAINS];
    let (a, b) = (
        black_box(_mm512_set1_epi8(3)),
        black_box(_mm512_set1_epi8(-5)),
    );
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_dpbusd_epi32(*sum, a, b);
        }
    }
    black_box(sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_avx2(rounds: usize) {
    use std::arch::x86_64::*;
    let mut sums = [_mm256_setzero_si256(); CHAINS];
    let (a, b) = (
        black_box(_mm256_set1_epi8(3)),
        black_box(_mm256_set1_epi8(-5)),
    );
    for _ in 0..rounds {
        for sum in &mut sums {
            // The product alone is loop-invariant; depending on the sum keeps it in the loop.
            *sum = _mm256_add_epi16(_mm256_maddubs_epi16(a, _mm256_xor_si256(b, *sum)), *sum);
        }
    }
    black_box(sums);
}

fn dot_portable(rounds: usize) {
    let mut sums = [[0i32; LANES]; CHAINS];
    let b = black_box([-5i32; LANES]);
    for round in 0..rounds {
        let a = round as i32 & 127;
        for sum in &mut sums {
            for (sum, b) in sum.iter_mut().zip(b) {
                *sum = sum.wrapping_add(a.wrapping_mul(b ^ *sum));
            }
        }
    }
    black_box(sums);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_positive_numbers() {
        let short = Duration::from_millis(1);
        assert!(measure_read_bandwidth(1 << 20, Some(2), short).unwrap() > 1e6);
        assert!(measure_int8_dot(Some(1), short).unwrap() > 1e6);
    }
}
