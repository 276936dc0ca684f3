//! Whole steps of a small model on each level: levels with fused multiply-add agree bit for bit.
//!
//! The level `amx` runs with emulated tiles where the machine has none, so that the code around its GEMMs (row tiles,
//! workers' shares, few rows) is exercised everywhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::*;
use crate::format::{FormatError, Problem, TensorSource, TensorView};
use crate::pack::tests::TestTensor;
use crate::plan::tests::GREEDY;
use crate::quant::DType;
use crate::sampler::SamplingRow;
use crate::spec::FeedForwardSpec;
use crate::spec::tests::{tiny_experts, tiny_json, whole};

const VOCAB: usize = 128;
const BLOCK: usize = 32;

/// A tensor of an in-memory model.
struct Stored {
    shape: Vec<usize>,
    dtype: DType,
    bytes: Vec<u8>,
}

/// Norms of experts beside a network.
const BESIDE_NORMS: [&str; 4] = [
    "router_norm",
    "experts_norm",
    "experts_post_norm",
    "shared_post_norm",
];

/// Weights of a layer with several residual streams.
const STREAM_ROLES: [&str; 8] = [
    "laurel_left",
    "laurel_right",
    "laurel_norm",
    "streams_norm",
    "streams_router",
    "streams_predict",
    "streams_correct",
    "streams_scale",
];

/// Random weights under the names of a GGUF file, or of their roles.
struct RandomModel(BTreeMap<String, Stored>);

impl RandomModel {
    fn new(spec: &ModelSpec, dtype: DType) -> Self {
        let mut tensors = BTreeMap::new();
        let mut add = |name: &str, shape: &[usize], dtype: DType| {
            let inputs = shape[shape.len() - 1];
            let outputs = shape[..shape.len() - 1].iter().product();
            let seed = 1 + tensors.len() as u64;
            let stored = Stored {
                shape: shape.to_vec(),
                dtype,
                bytes: TestTensor::random(dtype, outputs, inputs, seed).bytes,
            };
            tensors.insert(format!("{name}.weight"), stored);
        };
        let hidden = spec.hidden_size;
        add("token_embd", &[spec.vocab_size, hidden], DType::Q8_0);
        add("output_norm", &[hidden], DType::F32);
        for (layer, attention) in spec.attentions() {
            let block = &spec.layers[layer];
            let ffn = block.intermediate_size();
            let (queries, keys) = (
                attention.num_heads * attention.head_dim,
                attention.num_kv_heads * attention.head_dim,
            );
            for (name, outputs, inputs) in [
                ("attn_q", queries, hidden),
                ("attn_k", keys, hidden),
                ("attn_v", keys, hidden),
                ("attn_output", hidden, queries),
                ("ffn_gate", ffn, hidden),
                ("ffn_up", ffn, hidden),
                ("ffn_down", hidden, ffn),
            ] {
                add(&format!("blk.{layer}.{name}"), &[outputs, inputs], dtype);
            }
            if let Some(FeedForwardSpec::Experts(experts)) = &block.ffn {
                let (count, inner) = (experts.count, experts.intermediate_size);
                let mut experts = |name: &str, shape: &[usize], dtype| {
                    add(&format!("blk.{layer}.{name}"), shape, dtype);
                };
                experts("ffn_gate_inp", &[count, hidden], DType::F32);
                experts("ffn_gate_inp_shexp", &[1, hidden], DType::F32);
                experts("ffn_gate_exps", &[count, inner, hidden], dtype);
                experts("ffn_up_exps", &[count, inner, hidden], dtype);
                experts("ffn_down_exps", &[count, hidden, inner], dtype);
            }
            for name in ["attn_norm", "ffn_norm"] {
                add(&format!("blk.{layer}.{name}"), &[hidden], DType::F32);
            }
            let mut add_if_needed = |role: &str, shape: &[usize], dtype| {
                if block.has(role) {
                    add(&format!("blk.{layer}.{role}"), shape, dtype);
                }
            };
            for role in BESIDE_NORMS {
                add_if_needed(role, &[hidden], DType::F32);
            }
            let (rank, streams) = (spec.laurel_rank, spec.streams.map_or(0, |one| one.count));
            add_if_needed("laurel_left", &[rank, hidden], dtype);
            add_if_needed("laurel_right", &[hidden, rank], dtype);
            add_if_needed("laurel_norm", &[hidden], DType::F32);
            add_if_needed("streams_norm", &[hidden], DType::F32);
            add_if_needed("streams_router", &[streams, hidden], DType::F32);
            add_if_needed("streams_predict", &[streams * streams, streams], DType::F32);
            add_if_needed("streams_correct", &[streams, streams], DType::F32);
            add_if_needed("streams_scale", &[hidden], DType::F32);
        }
        if let Some(streams) = spec.streams {
            let rows = (streams.count - 1) * hidden;
            add("streams_projection", &[rows, hidden], dtype);
            add("streams_merge", &[rows, hidden], dtype);
        }
        Self(tensors)
    }
}

impl TensorSource for RandomModel {
    fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        let Some((name, stored)) = self.0.get_key_value(name) else {
            let problem = Problem::NoTensor(name.to_owned());
            return Err(FormatError::new(Path::new("a test"), problem));
        };
        Ok(TensorView {
            name,
            shape: &stored.shape,
            dtype: stored.dtype,
            bytes: &stored.bytes,
        })
    }

    fn release(&self, _name: &str) {}

    fn release_rows(&self, _name: &str, _rows: std::ops::Range<usize>) {}
}

fn tiny_spec() -> ModelSpec {
    let mut json = tiny_json();
    json["vocab_size"] = VOCAB.into();
    ModelSpec::from_json(&json.to_string()).expect("a sound spec")
}

/// The same with experts in its second layer, and a network that every token uses besides.
fn expert_spec(activation: &str) -> ModelSpec {
    ModelSpec::from_json(&expert_json(activation).to_string()).expect("a sound spec")
}

fn expert_json(activation: &str) -> Value {
    let mut json = tiny_json();
    json["vocab_size"] = VOCAB.into();
    let layer = &mut json["layers"][1];
    layer["ffn"] = tiny_experts();
    layer["ffn"]["activation"] = activation.into();
    for (role, name) in [
        ("router", "ffn_gate_inp"),
        ("shared_router", "ffn_gate_inp_shexp"),
        ("experts.gate", "ffn_gate_exps"),
        ("experts.up", "ffn_up_exps"),
        ("experts.down", "ffn_down_exps"),
        ("shared.gate", "ffn_gate"),
        ("shared.up", "ffn_up"),
        ("shared.down", "ffn_down"),
    ] {
        layer["tensors"][role] = whole(&format!("blk.1.{name}.weight"));
    }
    json
}

/// The same where experts and network have norms of their own.
fn beside_spec() -> ModelSpec {
    let mut json = expert_json("gelu_tanh");
    let tensors = &mut json["layers"][1]["tensors"];
    for role in BESIDE_NORMS {
        tensors[role] = whole(&format!("blk.1.{role}.weight"));
    }
    tensors.as_object_mut().unwrap().remove("shared_router");
    ModelSpec::from_json(&json.to_string()).expect("a sound spec")
}

/// With several residual streams, products beside its mixers, and a layer that cuts its gates.
fn stream_spec() -> ModelSpec {
    let mut json = tiny_json();
    json["vocab_size"] = VOCAB.into();
    json["streams"] = serde_json::json!({ "count": 3, "active": 1 });
    json["laurel_rank"] = 32.into();
    json["layers"][0]["ffn"]["cutoff"] = 0.5.into();
    for layer in 0..2 {
        for role in STREAM_ROLES {
            json["layers"][layer]["tensors"][role] = whole(&format!("blk.{layer}.{role}.weight"));
        }
    }
    for role in ["streams_projection", "streams_merge"] {
        json["tensors"][role] = whole(&format!("{role}.weight"));
    }
    ModelSpec::from_json(&json.to_string()).expect("a sound spec")
}

fn specs() -> [ModelSpec; 5] {
    [
        tiny_spec(),
        expert_spec("silu"),
        expert_spec("swiglu_clamped"),
        beside_spec(),
        stream_spec(),
    ]
}

fn config(level: Level) -> ExecutorConfig {
    ExecutorConfig {
        num_blocks: 4,
        block_size: BLOCK,
        weights: "stored".into(),
        kv_dtype: "f16".into(),
        threads: Some(2),
        dispatch: level.name().into(),
        max_rows: 1,
        max_batched_tokens: 64,
        max_model_len: 64,
        state_slots: 0,
        window_blocks: 0,
        packed_weights: None,
    }
}

#[test]
fn block_sizes_whose_bytes_would_wrap_are_refused() {
    for block_size in [0, (1 << 16) + 16, 1 << 60] {
        let config = ExecutorConfig {
            block_size,
            ..config(Level::Portable)
        };
        let error = limits_of(&tiny_spec(), &config).unwrap_err().to_string();
        assert!(error.contains("block_size"), "{error}");
    }
}

#[test]
fn the_memory_plan_is_what_an_executor_holds() {
    for spec in specs() {
        check_memory_plan(&spec);
    }
}

fn check_memory_plan(spec: &ModelSpec) {
    let stored = DType::ALL
        .into_iter()
        .filter(|dtype| dtype.block_len() <= 32)
        .map(|dtype| (dtype, "stored"));
    let quantised = [(DType::BF16, "q8"), (DType::F16, "q4"), (DType::F32, "q4")];
    for (dtype, weights) in stored.chain(quantised) {
        let source = RandomModel::new(spec, dtype);
        let config = ExecutorConfig {
            weights: weights.into(),
            ..config(Level::Portable)
        };
        let plan = Executor::plan_memory_of(spec, &source, &config).unwrap();
        let held = Executor::of(spec.clone(), &source, &config, Level::Portable, &mut |_| {
            true
        });
        let info = held.expect("a sound model").info();
        assert_eq!(plan.weight_bytes, info.weight_bytes, "{dtype:?}");
        assert_eq!(plan.weight_format, info.weight_format);
        assert_eq!(plan.work_bytes, info.work_bytes);
        assert_eq!(plan.block_bytes * config.num_blocks, info.kv_bytes);
    }
}

fn executor(level: Level, spec: &ModelSpec, source: &RandomModel) -> Executor {
    let config = config(level);
    Executor::of(spec.clone(), source, &config, level, &mut |_| true).expect("a sound model")
}

/// The bits of the logprob of each of `tokens` tokens of a prompt, computed in one step.
fn prompt_logprobs(executor: &mut Executor, tokens: usize) -> Vec<u32> {
    let all: Vec<i32> = (0..tokens as i32).collect();
    logprobs_of(executor, tokens, &all)
}

/// The bits of the logprobs of tokens `scored`, in a step that needs no other logits.
fn logprobs_of(executor: &mut Executor, tokens: usize, scored: &[i32]) -> Vec<u32> {
    let ids: Vec<i32> = (0..=tokens).map(|at| (7 * at % VOCAB) as i32).collect();
    let greedy = GREEDY;
    // SAFETY: numbers, seen as bytes.
    let sampling = unsafe {
        std::slice::from_raw_parts((&raw const greedy).cast::<u8>(), size_of::<SamplingRow>())
    };
    let input = StepInput {
        rows: &[0],
        query_start: &[0, tokens as i32],
        token_ids: &ids[..tokens],
        positions: &(0..tokens as i32).collect::<Vec<_>>(),
        needs_logits: &[0],
        block_tables: &[2, 0],
        max_blocks: 2,
        token_table: &ids,
        token_stride: ids.len(),
        num_tokens: &[ids.len() as i32],
        penalty_start: &[ids.len() as i32],
        sampling,
        bias_rows: &[],
        bias_ids: &[],
        bias_values: &[],
        logprob_rows: &[],
        logprob_ids: &[],
        breaker_heads: &[],
        breaker_tails: &[],
        mask_rows: &[],
        mask_bits: &[],
        num_draft_tokens: &[],
        score_tokens: scored,
        score_targets: &scored
            .iter()
            .map(|&at| ids[at as usize + 1])
            .collect::<Vec<_>>(),
        score_tops: &vec![0; scored.len()],
        state_slots: &[],
        window_blocks: &[],
    };
    let mut logprobs = vec![0.0; scored.len()];
    let tops = scored.len() * MAX_TOP_LOGPROBS;
    let mut output = StepOutput {
        sampled: &mut [0],
        logprobs: &mut [0.0],
        top_ids: &mut [0; MAX_TOP_LOGPROBS],
        top_logprobs: &mut [0.0; MAX_TOP_LOGPROBS],
        token_id_logprobs: &mut [],
        failed: &mut [0],
        accepted: &mut [0],
        draft_logprobs: &mut [],
        draft_top_ids: &mut [],
        draft_top_logprobs: &mut [],
        score_logprobs: &mut logprobs,
        score_ranks: &mut vec![0; scored.len()],
        score_top_ids: &mut vec![0; tops],
        score_top_logprobs: &mut vec![0.0; tops],
    };
    executor.begin(&input, &output).expect("a sound step");
    executor.compute().expect("no worker fails");
    executor.finish(&mut output);
    assert!(logprobs.iter().all(|p| p.is_finite() && *p < 0.0));
    logprobs.into_iter().map(f32::to_bits).collect()
}

#[test]
fn whole_steps_have_the_same_bits_on_levels_with_fused_multiply_add() {
    specs().iter().for_each(compare_levels);
}

fn compare_levels(spec: &ModelSpec) {
    for dtype in [DType::Q4_1, DType::Q8_0] {
        let source = RandomModel::new(spec, dtype);
        // Few rows, rows that each worker prepares for itself, a tile, a row more, several tiles.
        for tokens in [3, 7, 16, 17, 40] {
            let levels = [Level::Amx, Level::Avx512, Level::AvxVnni, Level::Avx2];
            let mut results = levels
                .into_iter()
                .filter(|level| level.available())
                .map(|level| {
                    let mut executor = executor(level, spec, &source);
                    (level, prompt_logprobs(&mut executor, tokens))
                });
            let Some((_, first)) = results.next() else {
                eprintln!("skipped: this machine has none of {levels:?}");
                return;
            };
            for (level, other) in results {
                assert_eq!(other, first, "{level:?} {dtype:?} {tokens} tokens");
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_whatever_rows_are_computed_with_it() {
    for spec in specs() {
        for dtype in [DType::F32, DType::Q4_1, DType::Q8_0] {
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                let mut executor = executor(level, &spec, &RandomModel::new(&spec, dtype));
                let all = prompt_logprobs(&mut executor, 40);
                for tokens in [17, 9, 1, 5, 8, 40] {
                    let fewer = prompt_logprobs(&mut executor, tokens);
                    assert_eq!(fewer, all[..tokens], "{level:?} {dtype:?} {tokens} tokens");
                }
            }
        }
    }
}

#[test]
fn narrowed_steps_have_the_same_bits() {
    let specs = specs();
    let levels = Level::ALL.into_iter().filter(|level| level.available());
    for (level, spec) in levels.flat_map(|level| specs.iter().map(move |spec| (level, spec))) {
        let mut executor = executor(level, spec, &RandomModel::new(spec, DType::Q4_1));
        for tokens in [9, 40, 63] {
            let all = prompt_logprobs(&mut executor, tokens);
            let last = tokens as i32 - 1;
            for scored in [&[last][..], &[0], &[3, last], &[7, 8, last - 1], &[]] {
                let expected: Vec<u32> = scored.iter().map(|&at| all[at as usize]).collect();
                let alone = logprobs_of(&mut executor, tokens, scored);
                assert_eq!(alone, expected, "{level:?} {scored:?} of {tokens} tokens");
            }
        }
    }
}

#[test]
fn a_worker_that_yields_its_core_within_steps_changes_no_bits() {
    let specs = [
        tiny_spec(),
        expert_spec("silu"),
        beside_spec(),
        stream_spec(),
    ];
    let levels = Level::ALL.into_iter().filter(|level| level.available());
    for (level, spec) in levels.flat_map(|level| specs.iter().map(move |spec| (level, spec))) {
        let mut executor = executor(level, spec, &RandomModel::new(spec, DType::Q4_1));
        // The last of these needs more logits than are computed at once.
        for tokens in [9, 17, 40] {
            let undisturbed = prompt_logprobs(&mut executor, tokens);
            let (yielder, over) = (executor.core_yielder(), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        drop(yielder.yield_core());
                        std::thread::yield_now();
                    }
                });
                for _ in 0..50 {
                    assert_eq!(prompt_logprobs(&mut executor, tokens), undisturbed);
                }
                over.store(true, Ordering::Relaxed);
            });
        }
    }
}
