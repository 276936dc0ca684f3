//! GEMM benchmark: one matrix of 65,536 × 2,048 weights in each format at several row counts, with two threads that divide its
//! panels. Prints the minimum time of each, the rate at which packed bytes are read, and the share of the int8 dot product's
//! peak. `outputs=N` changes the matrix's size: with 262,144 it is larger than a server's shared cache, too.
//!
//! `cargo run --release --example format_speed -- [outputs=N] [format ...] [rows ...]`

mod rows;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pravaha_kernels::activation_quant::ScaleMode;
use pravaha_kernels::arena::Buffer;
use pravaha_kernels::dispatch::Level;
use pravaha_kernels::gemm::{Gemm, Output, PanelScratch};
use pravaha_kernels::pack::{PackedMatrix, PanelKind};
use pravaha_kernels::pool::Pool;
use pravaha_kernels::quant::DType;
use pravaha_kernels::roofline::measure_int8_dot;
use pravaha_kernels::topology::Topology;
use rows::Rows;

const OUTPUTS: usize = 65_536;
const INPUTS: usize = 2048;
const ROWS: [usize; 6] = [1, 4, 8, 16, 64, 512];
const MAX_ROWS: usize = 512;
const THREADS: usize = 2;
/// Panels that a worker takes at once.
const PART: usize = 8;
const DURATION: Duration = Duration::from_millis(700);

fn main() {
    let (mut formats, mut counts, mut outputs) = (Vec::new(), Vec::new(), OUTPUTS);
    for arg in std::env::args().skip(1) {
        if let Some(number) = arg.strip_prefix("outputs=") {
            let number: usize = number.parse().expect("a number of outputs");
            outputs = number.next_multiple_of(16 * PART * THREADS);
            continue;
        }
        match arg.parse::<usize>() {
            Ok(rows) => counts.push(rows.clamp(1, MAX_ROWS)),
            Err(_) => formats.push(DType::from_name(&arg).expect("a format")),
        }
    }
    if formats.is_empty() {
        let packed = |dtype: &DType| PanelKind::of(*dtype).is_quantized();
        formats.extend(DType::ALL.into_iter().filter(packed));
    }
    if counts.is_empty() {
        counts = ROWS.into();
    }
    let level = Level::choose("auto").expect("a level");
    let x = Rows::new(level, MAX_ROWS, INPUTS, ScaleMode::MaxAbs, None);
    let out = Buffer::<f32>::new(MAX_ROWS * outputs).expect("memory");
    let peak = measure_int8_dot(Some(THREADS), Duration::from_millis(300)).expect("a peak");
    let mut pool = Pool::new(Some(THREADS), &Topology::detect()).expect("threads");
    for dtype in formats {
        let kind = PanelKind::of(dtype);
        let memory = Buffer::<u8>::new(outputs / 16 * kind.panel_bytes(INPUTS)).expect("memory");
        // SAFETY: not shared. 0x3131 is a small positive f16.
        unsafe { memory.slice_mut(0, memory.len()) }.fill(0x31);
        // SAFETY: the buffer was sized for the matrix and lives as long.
        let matrix = unsafe { PackedMatrix::at(memory.ptr(), kind, outputs, outputs, INPUTS) };
        for &rows in &counts {
            let mut best = Duration::MAX;
            let started = Instant::now();
            while started.elapsed() < DURATION {
                let counter = AtomicUsize::new(0);
                let begin = Instant::now();
                pool.run(&|_| {
                    let activations = x.activations();
                    let mut scratch = PanelScratch::new(MAX_ROWS, INPUTS).expect("memory");
                    // SAFETY: the level is available; there are at least `rows` rows.
                    let mut gemm = unsafe { Gemm::new(level, &activations, rows, &mut scratch) };
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
                                stride: outputs,
                                accumulate: false,
                                bias: std::ptr::null(),
                            };
                            gemm.panels(&matrix, panels, next, output);
                        }
                    }
                })
                .expect("no panic");
                best = best.min(begin.elapsed());
            }
            let seconds = best.as_secs_f64();
            let operations = 2.0 * (outputs * INPUTS * rows) as f64;
            println!(
                "{:5} {rows:3} rows: {:8.2} ms, {:5.1} GB/s, {:4.1} % of the dot product's peak",
                dtype.name(),
                seconds * 1e3,
                matrix.bytes() as f64 / seconds / 1e9,
                100.0 * operations / seconds / peak,
            );
        }
    }
}
