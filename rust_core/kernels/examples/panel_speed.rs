//! Milliseconds that one thread needs for every product of a small model, at several row counts: the
//! matrices of SmolLM2-135M as 4-bit panels, and nothing else of a step.
//!
//! `cargo run --release --example panel_speed -- [level]`

use std::time::{Duration, Instant};

use pravaha_kernels::activation_quant::{Outlier, QuantRows, TileGroup, quantize_row};
use pravaha_kernels::arena::Buffer;
use pravaha_kernels::dispatch::Level;
use pravaha_kernels::gemm::{Activations, Output, multiply_panel};
use pravaha_kernels::pack::{PackedMatrix, PanelKind};
use pravaha_kernels::quant::DType;

const LAYERS: usize = 30;
/// Outputs and inputs: q, k and v, o, gate and up, down.
const SHAPES: [(usize, usize); 4] = [(960, 576), (576, 576), (3072, 576), (576, 1536)];
const LM_HEAD: (usize, usize) = (49152, 576);
const MOST_ROWS: usize = 64;
const WIDEST: usize = 1536;

fn main() {
    let level = Level::choose(&std::env::args().nth(1).unwrap_or("auto".into())).expect("a level");
    let mut shapes: Vec<((usize, usize), DType)> = (0..LAYERS)
        .flat_map(|_| SHAPES.map(|shape| (shape, DType::Q4_1)))
        .collect();
    shapes.push((LM_HEAD, DType::Q8_0));
    let memory: Vec<Buffer<u8>> = shapes
        .iter()
        .map(|&((outputs, inputs), dtype)| {
            let buffer = Buffer::new(outputs / 16 * PanelKind::of(dtype).panel_bytes(inputs))
                .expect("memory");
            // SAFETY: ours alone. 0x3131 is a small positive f16.
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
    let row: Vec<f32> = (0..WIDEST).map(|i| (i as f32 * 0.7).sin()).collect();
    let tiles = Buffer::<TileGroup>::new(MOST_ROWS / 4 * WIDEST / 32).expect("memory");
    let outliers = Buffer::<Outlier>::new(MOST_ROWS * WIDEST / 32).expect("memory");
    let outlier_counts = Buffer::<u32>::new(MOST_ROWS).expect("memory");
    // SAFETY: ours alone; the level was chosen for this machine.
    unsafe {
        for at in 0..MOST_ROWS {
            quantize_row(
                level,
                &row,
                None,
                at % 4,
                tiles.slice_mut(at / 4 * 48, 48),
                outliers.slice_mut(at * 48, 48),
            );
        }
    }
    let out = vec![0f32; MOST_ROWS * 16];
    for rows in [1, 2, 4, 8, 16, 32, 64] {
        let mut best = Duration::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            for matrix in &matrices {
                let quant = QuantRows {
                    tiles: tiles.ptr(),
                    outliers: outliers.ptr(),
                    outlier_counts: outlier_counts.ptr(),
                    inputs: matrix.inputs,
                };
                let activations = Activations {
                    quant,
                    float: row.as_ptr(),
                    float_stride: 0,
                };
                for panel in 0..matrix.panels() {
                    let next = matrix.panel((panel + 1).min(matrix.panels() - 1));
                    let output = Output {
                        out: out.as_ptr().cast_mut(),
                        stride: 16,
                        accumulate: false,
                        bias: std::ptr::null(),
                    };
                    // SAFETY: available level, buffers of the shapes' sizes.
                    unsafe {
                        multiply_panel(level, matrix, panel, next, &activations, rows, output)
                    };
                }
            }
            best = best.min(start.elapsed());
        }
        let weights: usize = matrices.iter().map(|m| m.outputs * m.inputs).sum();
        let tera = 2.0 * (weights * rows) as f64 / best.as_secs_f64() / 1e12;
        println!(
            "{} {rows:3} rows: {:7.2} ms, {tera:.2} TOPS",
            level.name(),
            best.as_secs_f64() * 1e3
        );
    }
}
