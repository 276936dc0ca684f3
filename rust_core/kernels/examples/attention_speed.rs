//! Single-threaded attention benchmark with the heads of SmolLM2-135M: decode rows, decode rows with a shared prefix,
//! and prefill.
//!
//! `cargo run --release --example attention_speed -- [level] [kv type] [part of a name]`
//!
//! Each shape is timed in parts of about a millisecond and the minimum of each part is used, to reduce the effect of noisy
//! neighbours.

use std::time::{Duration, Instant};

use pravaha_kernels::attention::{CHUNK, Scratch, Segment, Task, attend};
use pravaha_kernels::dispatch::Level;
use pravaha_kernels::kv_cache::{KvCache, KvDtype, KvHeads, KvShape};

const BLOCK: usize = 32;
const KV_HEADS: usize = 3;
const GROUP: usize = 3;
const DIM: usize = 64;

/// Tasks of `tokens` tokens with a context of `context` tokens, of which `shared` are a common prefix, in each of
/// `layers` layers. With many layers, keys and values are read from main memory, as in a step.
struct Shape {
    name: &'static str,
    layers: usize,
    tasks: usize,
    tokens: usize,
    context: usize,
    /// None: all tasks are consecutive parts of one prompt.
    shared: Option<usize>,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let level = Level::choose(&args.next().unwrap_or("auto".into())).expect("a level");
    let dtype = KvDtype::parse(&args.next().unwrap_or("f16".into())).expect("a KV type");
    let shape = |name, layers, tasks, tokens, context, shared| Shape {
        name,
        layers,
        tasks,
        tokens,
        context,
        shared,
    };
    let shapes = [
        shape("decode, 96, in the cache", 1, 8, 1, 96, Some(0)),
        shape("decode, 96", 30, 64, 1, 96, Some(0)),
        shape("decode, 1k", 30, 16, 1, 1024, Some(0)),
        shape("decode, 1k shared by 16", 1, 4, 16, 1024, Some(960)),
        shape("prompt, 64", 1, 4, 16, 0, None),
        shape("prompt, 512", 1, 32, 16, 0, None),
        shape("prompt, 512, its end", 1, 1, 16, 496, None),
    ];
    let only = args.next().unwrap_or_default();
    for shape in shapes
        .into_iter()
        .filter(|shape| shape.name.contains(&only))
    {
        run(level, dtype, &shape);
    }
}

fn run(level: Level, dtype: KvDtype, shape: &Shape) {
    let end = match shape.shared {
        Some(_) => shape.context + shape.tokens,
        None => shape.context + shape.tasks * shape.tokens,
    };
    let width = end.div_ceil(BLOCK);
    let sequences = if shape.shared.is_some() {
        shape.tasks * shape.tokens
    } else {
        1
    };
    let mut kv = KvCache::new(KvShape {
        dtype,
        blocks: sequences * width,
        block_size: BLOCK,
        layers: vec![
            KvHeads {
                kv_heads: KV_HEADS,
                head_dim: DIM,
            };
            shape.layers
        ],
    })
    .expect("memory");
    kv.prefault();
    let shared = shape.shared.unwrap_or(0);
    let tables: Vec<i32> = (0..sequences * width)
        .map(|at| {
            let first = at / width / shape.tokens * shape.tokens * width;
            let block = if at % width < shared / BLOCK {
                first + at % width
            } else {
                at
            };
            block as i32
        })
        .collect();
    let tokens: Vec<u32> = (0..shape.tokens as u32).collect();
    let positions = |task: usize| -> Vec<i32> {
        (0..shape.tokens)
            .map(|token| match shape.shared {
                Some(_) => shape.context,
                None => shape.context + task * shape.tokens + token,
            })
            .map(|position| position as i32)
            .collect()
    };
    let row = KV_HEADS * GROUP * DIM;
    let q: Vec<f32> = (0..shape.tokens * row)
        .map(|i| (i as f32 * 0.7).sin())
        .collect();
    let mut out = vec![0f32; shape.tokens * row];
    let mut scratch = Scratch::new();
    let mut best = vec![Duration::MAX; shape.layers * shape.tasks];
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1) {
        for (number, best) in best.iter_mut().enumerate() {
            let (layer, index) = (number / shape.tasks, number % shape.tasks);
            let positions = positions(index);
            let last = positions[shape.tokens - 1] as usize;
            let segments: Vec<Segment> = match shape.shared {
                None => vec![Segment {
                    tokens: 0..shape.tokens as u32,
                    chunks: 0..(last / CHUNK + 1) as u32,
                    table: 0,
                }],
                Some(shared) => {
                    let first = (index * shape.tokens) as u32;
                    let mut segments = Vec::new();
                    if shared > 0 {
                        segments.push(Segment {
                            tokens: 0..shape.tokens as u32,
                            chunks: 0..(shared / CHUNK) as u32,
                            table: first,
                        });
                    }
                    segments.extend((0..shape.tokens as u32).map(|token| Segment {
                        tokens: token..token + 1,
                        chunks: (shared / CHUNK) as u32..(shape.context + 1).div_ceil(CHUNK) as u32,
                        table: first + token,
                    }));
                    segments
                }
            };
            let start = Instant::now();
            for kv_head in 0..KV_HEADS {
                let task = Task {
                    kv: kv.layer(layer),
                    kv_head,
                    head: kv_head * GROUP,
                    heads: GROUP,
                    window: 0,
                    scale: 0.125,
                    softcap: 0.0,
                    sinks: None,
                    tokens: &tokens,
                    positions: &positions,
                    segments: &segments,
                    tables: &tables,
                    table_width: width,
                    q: q.as_ptr(),
                    q_token_stride: row,
                    q_head_stride: DIM,
                    out: out.as_mut_ptr(),
                    out_token_stride: row,
                };
                // As in a step: the next KV head's keys are prefetched.
                let ahead = Task {
                    kv_head: (kv_head + 1) % KV_HEADS,
                    ..task
                };
                let ahead = (kv_head + 1 < KV_HEADS).then_some(&ahead);
                // SAFETY: the level was chosen for this machine; extents match.
                unsafe { attend(level, &task, None, ahead, &mut scratch) };
            }
            *best = start.elapsed().min(*best);
        }
    }
    let seconds: f64 = best.iter().map(Duration::as_secs_f64).sum();
    let seen: usize = (0..shape.tasks)
        .flat_map(positions)
        .map(|position| position as usize + 1)
        .sum();
    let operations = (4 * seen * shape.layers * row) as f64;
    println!(
        "{:26} {:8.2} us a task, {:6.1} GFLOP/s",
        shape.name,
        1e6 * seconds / (best.len() * KV_HEADS) as f64,
        operations / seconds / 1e9
    );
}
