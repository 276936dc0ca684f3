//! Recurrent heads benchmark: time of the heads of all layers of Qwen3.5 0.8B (gated DeltaNet) or of a Granite 4 hybrid (Mamba2),
//! without the rest of a step, for single tokens of several sequences and for prompts. Runs with one thread and with two that
//! divide heads as a step's workers do. The minimum over windows of 16 steps is used, to reduce the effect of noisy neighbours.
//!
//! `cargo run --release --example recurrent_speed -- [level] [delta|mamba2] [SEQUENCESxTOKENS ...]`

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pravaha_kernels::arena::{Buffer, Pages};
use pravaha_kernels::dispatch::Level;
use pravaha_kernels::pool::Pool;
use pravaha_kernels::recurrent::head::{HeadRun, HeadWeights, Heads, TokenRows};
use pravaha_kernels::recurrent::scan::{HeadShape, ScanScratch};
use pravaha_kernels::roofline::measure_read_bandwidth;
use pravaha_kernels::topology::Topology;

/// (layers, heads)
const DELTA: (usize, Heads) = (
    18,
    Heads {
        shape: HeadShape {
            key_dim: 128,
            value_dim: 128,
            delta: true,
        },
        count: 16,
        key_count: 16,
        tiled: true,
    },
);
const MAMBA2: (usize, Heads) = (
    36,
    Heads {
        shape: HeadShape {
            key_dim: 128,
            value_dim: 64,
            delta: false,
        },
        count: 48,
        key_count: 1,
        tiled: false,
    },
);
const CASES: [&str; 8] = ["1x1", "4x1", "16x1", "1x2", "1x4", "1x16", "1x64", "1x512"];
/// Steps of a window: with single tokens, as many as there are tokens between two updates of a state.
const STEPS: usize = 16;

/// The buffers of a step.
struct Step<'a> {
    level: Level,
    layers: usize,
    heads: &'a Heads,
    weights: &'a HeadWeights,
    sequences: usize,
    tokens: usize,
    /// `[sequences * tokens, width]`
    projected: &'a Buffer<f32>,
    output: &'a Buffer<f32>,
    /// `[sequences, layers, heads, state]`
    states: &'a Buffer<f32>,
}

impl Step<'_> {
    /// Apply head `item / sequences` of layer `layer` to sequence `item % sequences`, whose tokens begin at `position`.
    fn apply(&self, layer: usize, item: usize, position: usize, scratch: &mut ScanScratch) {
        let (head, sequence) = (item / self.sequences, item % self.sequences);
        let (count, state_len) = (self.heads.count, self.heads.shape.state_len());
        let state = (sequence * self.layers + layer) * count + head;
        let row = sequence * self.tokens;
        let rows = |buffer: &Buffer<f32>, stride: usize| TokenRows {
            start: buffer.ptr().wrapping_add(row * stride),
            stride,
        };
        let run = HeadRun {
            heads: self.heads,
            weights: self.weights,
            head,
            tokens: self.tokens,
            projected: rows(self.projected, self.heads.layout().width),
            output: rows(self.output, self.heads.outputs()),
            state: self.states.ptr().wrapping_add(state * state_len),
            fresh: position == 0,
        };
        // SAFETY: the level is available; the buffers have these sizes; no two items share a state or outputs.
        unsafe { run.run(self.level, scratch) };
    }

    /// Seconds of a step: the mean of the fastest of several windows.
    fn measure(&self, threads: usize) -> Option<f64> {
        let mut pool = Pool::new(Some(threads), &Topology::detect()).ok()?;
        let items = self.heads.count * self.sequences;
        let counters: Vec<AtomicUsize> = (0..self.layers).map(|_| AtomicUsize::new(0)).collect();
        let shape = self.heads.shape;
        let (started, mut best, mut position) = (Instant::now(), f64::INFINITY, 0);
        let scratches: Vec<Mutex<ScanScratch>> = (0..threads)
            .map(|_| ScanScratch::new(shape.key_dim, shape.value_dim).expect("memory"))
            .map(Mutex::new)
            .collect();
        let mut windows = 0;
        while windows < 3 || started.elapsed() < Duration::from_secs(1) {
            let begin = Instant::now();
            for _ in 0..STEPS {
                for counter in &counters {
                    counter.store(0, Ordering::Relaxed);
                }
                pool.run(&|worker| {
                    let mut scratch = scratches[worker.index()].lock().expect("no panic");
                    for (layer, counter) in counters.iter().enumerate() {
                        loop {
                            let item = counter.fetch_add(1, Ordering::Relaxed);
                            if item >= items {
                                break;
                            }
                            self.apply(layer, item, position, &mut scratch);
                        }
                        worker.barrier();
                    }
                })
                .expect("no panic");
                position += self.tokens;
            }
            best = best.min(begin.elapsed().as_secs_f64() / STEPS as f64);
            windows += 1;
        }
        Some(best)
    }
}

/// Deterministic values in [-1, 1].
fn fill(buffer: &Buffer<f32>, seed: usize) {
    // SAFETY: not shared.
    let values = unsafe { buffer.slice_mut(0, buffer.len()) };
    for (at, value) in values.iter_mut().enumerate() {
        *value = ((at + seed) as f32 * 0.7).sin();
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let level = Level::choose(&args.next().unwrap_or("auto".into())).expect("a level");
    let kind = args.next().unwrap_or("delta".into());
    let (layers, heads) = if kind == "mamba2" { MAMBA2 } else { DELTA };
    let mut cases: Vec<String> = args.collect();
    if cases.is_empty() {
        cases = CASES.map(Into::into).into();
    }
    let (shape, count) = (heads.shape, heads.count);
    let delta = shape.delta;
    let weights = HeadWeights {
        rates: vec![-0.1; count],
        skip: vec![0.5; if delta { 0 } else { count }],
        norm: vec![1.0; if delta { shape.value_dim } else { 0 }],
        norm_eps: 1e-6,
    };
    let matrices = layers * count * shape.key_dim * shape.value_dim * size_of::<f32>();
    for case in cases {
        let (sequences, tokens) = case.split_once('x').expect("SEQUENCESxTOKENS");
        let number = |text: &str| text.parse::<usize>().expect("a number");
        let (sequences, tokens) = (number(sequences), number(tokens));
        let rows = sequences * tokens;
        let buffer = |len: usize| Buffer::<f32>::new(len).expect("memory");
        let projected = buffer(rows * heads.layout().width);
        let output = buffer(rows * heads.outputs());
        let states = buffer(sequences * layers * count * shape.state_len());
        fill(&projected, 1);
        let step = Step {
            level,
            layers,
            heads: &heads,
            weights: &weights,
            sequences,
            tokens,
            projected: &projected,
            output: &output,
            states: &states,
        };
        for threads in [1, 2] {
            let Some(seconds) = step.measure(threads) else {
                continue;
            };
            let bytes = sequences * matrices;
            let duration = Duration::from_millis(300);
            let peak = measure_read_bandwidth(bytes, Some(threads), Pages::Huge, duration)
                .expect("a bandwidth");
            let rate = bytes as f64 / seconds;
            println!(
                "{kind} {} {threads} threads, {sequences:2} sequences of {tokens:3} tokens: {:8.3} ms, {:5.0} ns a token and head and thread, \
                 matrices once a step {:5.1} GB/s of {:5.1} ({:3.0} %)",
                level.name(),
                seconds * 1e3,
                seconds * 1e9 * threads as f64 / (rows * layers * count) as f64,
                rate / 1e9,
                peak / 1e9,
                100.0 * rate / peak
            );
        }
    }
}
