//! GEMM benchmark: time of all matrix products of SmolLM2-135M at several row counts, with the formats, activations,
//! outliers, strides and residual additions of a step, but without the rest of a step. Runs with one thread and with two that
//! divide panels as a step's workers do. The minimum time per matrix is used, to reduce the effect of noisy neighbours.
//!
//! `cargo run --release --example panel_speed -- [level] [rows ...]`

mod rows;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pravaha_kernels::activation_quant::ScaleMode;
use pravaha_kernels::arena::Buffer;
use pravaha_kernels::dispatch::Level;
use pravaha_kernels::gemm::{Activations, Gemm, Output, PanelScratch};
use pravaha_kernels::pack::{PackedMatrix, PanelKind};
use pravaha_kernels::pool::Pool;
use pravaha_kernels::quant::DType;
use pravaha_kernels::roofline::measure_int8_dot;
use pravaha_kernels::topology::Topology;
use rows::Rows;

const LAYERS: usize = 30;
/// Outputs and inputs of: q, k and v; o; gate and up; down.
const SHAPES: [(usize, usize); 4] = [(960, 576), (576, 576), (3072, 576), (576, 1536)];
const LM_HEAD: (usize, usize) = (49152, 576);
/// Larger row counts are prefill, without lm_head.
const MAX_DECODE_ROWS: usize = 64;
const ROWS: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
const MAX_ROWS: usize = 512;
/// Panels that a worker takes at once.
const PART: usize = 4;
const MAX_WIDTH: usize = 1536;
/// Every so many inputs one is an outlier, as in the demo model's activations.
const OUTLIER_EVERY: usize = 311;

/// Compute one worker's panels of a GEMM.
fn multiply(
    level: Level,
    matrix: &PackedMatrix,
    counter: &AtomicUsize,
    activations: &Activations,
    rows: usize,
    out: &Buffer<f32>,
    scratch: &mut PanelScratch,
) {
    // SAFETY: the level is available; there are at least `rows` rows.
    let mut gemm = unsafe { Gemm::new(level, activations, rows, scratch) };
    loop {
        let first = counter.fetch_add(PART, Ordering::Relaxed);
        if first >= matrix.panels() {
            return;
        }
        let panels = first..matrix.panels().min(first + PART);
        let next = matrix.panel(panels.end.min(matrix.panels() - 1));
        // SAFETY: buffers of the shapes' sizes; the panels' columns are this worker's.
        unsafe {
            let output = Output {
                out: out.ptr().add(first * 16),
                stride: matrix.outputs,
                accumulate: matrix.outputs == 576,
                bias: std::ptr::null(),
            };
            gemm.panels(matrix, panels, next, output);
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let level = Level::choose(&args.next().unwrap_or("auto".into())).expect("a level");
    let mut counts: Vec<usize> = args.map(|rows| rows.parse().expect("rows")).collect();
    if counts.is_empty() {
        counts = ROWS.into();
    }
    assert!(counts.iter().all(|rows| (1..=MAX_ROWS).contains(rows)));
    let mut shapes: Vec<((usize, usize), DType)> = (0..LAYERS)
        .flat_map(|_| SHAPES.map(|shape| (shape, DType::Q4_1)))
        .collect();
    shapes.push((LM_HEAD, DType::Q8_0));
    let memory: Vec<Buffer<u8>> = shapes
        .iter()
        .map(|&((outputs, inputs), dtype)| {
            let buffer = Buffer::new(outputs / 16 * PanelKind::of(dtype).panel_bytes(inputs))
                .expect("memory");
            // SAFETY: not shared. 0x3131 is a small positive f16.
            unsafe { buffer.slice_mut(0, buffer.len()) }.fill(0x31);
            buffer
        })
        .collect();
    let matrices: Vec<PackedMatrix> = shapes
        .iter()
        .zip(&memory)
        // SAFETY: each buffer was sized for its matrix and lives as long.
        .map(|(&((outputs, inputs), dtype), buffer)| unsafe {
            PackedMatrix::at(buffer.ptr(), PanelKind::of(dtype), outputs, outputs, inputs)
        })
        .collect();
    let activations = [576, MAX_WIDTH].map(|inputs| {
        let scale_mode = ScaleMode::PowerOfTwo;
        Rows::new(level, MAX_ROWS, inputs, scale_mode, Some(OUTLIER_EVERY))
    });
    let out = Buffer::<f32>::new(MAX_ROWS * 3072 + MAX_DECODE_ROWS * LM_HEAD.0).expect("memory");
    for threads in [1, 2] {
        let Ok(mut pool) = Pool::new(Some(threads), &Topology::detect()) else {
            continue;
        };
        let peak = measure_int8_dot(Some(threads), Duration::from_millis(200)).expect("a peak");
        for &rows in &counts {
            let matrices = &matrices[..if rows > MAX_DECODE_ROWS {
                matrices.len() - 1
            } else {
                matrices.len()
            }];
            let phases: Vec<AtomicUsize> = matrices.iter().map(|_| AtomicUsize::new(0)).collect();
            // Start and end of each worker's part of each GEMM, in nanoseconds.
            let clocks: Vec<Vec<(AtomicU64, AtomicU64)>> = (0..threads)
                .map(|_| matrices.iter().map(|_| Default::default()).collect())
                .collect();
            let mut best = vec![Duration::MAX; matrices.len()];
            let started = Instant::now();
            while started.elapsed() < Duration::from_secs(1) {
                for phase in &phases {
                    phase.store(0, Ordering::Relaxed);
                }
                let begin = Instant::now();
                let nanos = |at: &AtomicU64| Duration::from_nanos(at.load(Ordering::Relaxed));
                pool.run(&|worker| {
                    let clock = &clocks[worker.index()];
                    let mut scratch = PanelScratch::new(MAX_ROWS, MAX_WIDTH).expect("memory");
                    for (at, (matrix, counter)) in matrices.iter().zip(&phases).enumerate() {
                        let now = |to: &AtomicU64| {
                            to.store(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
                        };
                        now(&clock[at].0);
                        let x = &activations[usize::from(matrix.inputs == MAX_WIDTH)];
                        multiply(
                            level,
                            matrix,
                            counter,
                            &x.activations(),
                            rows,
                            &out,
                            &mut scratch,
                        );
                        now(&clock[at].1);
                        worker.barrier();
                    }
                })
                .expect("no panic");
                for (at, best) in best.iter_mut().enumerate() {
                    let starts = clocks.iter().map(|clock| nanos(&clock[at].0));
                    let ends = clocks.iter().map(|clock| nanos(&clock[at].1));
                    let taken = ends.max().expect("a worker") - starts.min().expect("a worker");
                    *best = taken.min(*best);
                }
            }
            let best: Duration = best.iter().sum();
            let weights: usize = matrices.iter().map(|m| m.outputs * m.inputs).sum();
            let rate = 2.0 * (weights * rows) as f64 / best.as_secs_f64();
            println!(
                "{} {threads} threads {rows:3} rows: {:7.2} ms, {:.2} TOPS, {:.1} % of the dot product's peak",
                level.name(),
                best.as_secs_f64() * 1e3,
                rate / 1e12,
                100.0 * rate / peak
            );
        }
    }
}
