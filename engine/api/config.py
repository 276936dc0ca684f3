"""`EngineConfig`: the settings that an engine is started with. Changing one requires a reload."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from engine.api.scheduling import Scheduling

WeightMode = Literal["stored", "q8", "q4"]
KvDtype = Literal["auto", "f16", "bf16", "f32", "int8"]
DispatchLevel = Literal["auto", "amx", "avx512", "avxvnni", "avx2", "portable"]
ExecutorChoice = Literal["auto", "native", "torch", "onnx"]
ComputeDtype = Literal["f32", "f16", "bf16"]
EmbeddingPrecision = Literal["f32", "int8"]
DtypeChoice = Literal["auto", "f32", "f16", "bf16"]
Device = Literal["auto", "cpu", "cuda"]
GenerationConfig = Literal["auto", "none"]
AttentionBackend = Literal["auto", "reference", "triton"]

DEFAULT_MAX_HOLD_S = 45.0
"""Below the 60 s after which impatient HTTP clients give up a response that has not begun."""

DEFAULT_STATE_INTERVAL = 1024
"""Two steps of the default token budget: what a fork at any token takes at most, and half of it on average.
The state of Qwen3.5's shapes takes as much as the KV of 3,000 tokens, so that checkpoints at half the
interval would take six times the memory of the KV."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Engine settings.

    Attributes:
        model: a GGUF file, a directory with config.json and safetensors, or a model in ONNX.
        name: the model's name on the screen and over HTTP.
        max_num_seqs: number of rows, i.e. of requests that run concurrently.
        max_num_batched_tokens: token budget of one step.
        max_model_len: context length in tokens; None takes the model's.
        block_size: tokens per KV block.
        kv_cache_bytes: size of the KV pool; None takes a share of free memory
            (`engine.memory.kv_cache_config.default_pool_bytes`), or what is left of `memory_bytes`.
        memory_bytes: most memory of weights, work buffers and KV pool together; None for no such limit.
        weights: `q8` and `q4` quantize float weights to 8 or 4 bits while they are loaded; `stored` does
            not. Weights that are quantized in the file stay as stored. Native only.
        kv_dtype: element type of the KV cache; `auto` is int8 or f16 in the native executor
            (`engine.executors.native_settings`), and the compute dtype in the torch executor. `int8`
            (native only) has one scale per token and head.
        state_slots: recurrent states in the pool, of running requests and checkpoints; None takes at most
            half of the pool's bytes (`engine.memory.kv_cache_config.choose_state_slots`). Only
            for models with recurrent layers.
        state_interval: tokens between checkpoints of a recurrent state or sliding window, rounded down to
            whole blocks: a fork computes so many tokens again at most.
        window_blocks: blocks of the layers with a sliding window, which keep no more than their window; None
            chooses their number (`engine.memory.kv_cache_config.choose_window_blocks`), and with 0 these
            layers keep every token. Native only.
        swap_bytes: capacity of the swap tier for KV blocks; 0 disables it. Swapped blocks are found
            by prefix, so this requires prefix caching.
        swap_dir: directory of the swap file, which persists across processes; None keeps swapped
            blocks in main memory, as is always the case for those of a GPU pool.
        weight_cache_bytes: size of the weight cache, which keeps packed weights of all models on disk; 0
            disables it. Native only.
        weight_cache_dir: directory of the weight cache; None disables it.
        needs_weight_cache: the model is larger than the memory that it may take, and its experts have to be
            read from the weight cache; set by the engine. Native only.
        prefix_caching: reuse the KV blocks of cached prompt prefixes instead of recomputing them.
        scheduling: scheduling policy and batch former; may be changed at run time.
        speculation: draft tokens by prompt lookup and verify several in a step; it changes the speed
            and no token. None is on, except where decode steps are replayed as CUDA graphs: a step with
            drafts is not, and takes longer than it saves. For models with recurrent layers it is off as well,
            since their states would be copied.
        draft_model: the file of a smaller native model with the same vocabulary, which proposes tokens
            where prompt lookup has none; None for no such model. Only with speculation.
        generation_config: `auto` applies the model's own generation defaults to parameters that a
            request leaves out; `none` does not. They are in `ModelInfo`; `SamplingParams` given to
            the engine are used as they are.
        max_queue: number of waiting requests at which new ones are refused.
        max_hold_s: seconds after which a held run of an agent goes before those for which it was held
            (`engine.scheduler.run_gate`); 0 holds none.
        niceness: nice(1) increment of the engine's threads relative to the process's others, so that
            a screen in the same process stays responsive. Linux only.
        threads: compute threads; None takes the physical cores available to this process.
        dispatch: instruction-set level; `auto` takes the best that the machine has. Native only.
        executor: `auto` takes the native executor for models that it supports, unless a setting
            below requires torch; onnx for models in ONNX; torch otherwise.
        device: device of the torch executor; `auto` takes a GPU if there is one.
        dtype: compute dtype of the torch executor; `auto` takes the checkpoint's.
        attention: attention backend of the torch executor; `auto` takes Triton's on a GPU.
        cuda_graphs: replay decode steps as CUDA graphs; None does on a GPU with Triton's attention. Torch
            only.
        dummy_weights: seeded random weights instead of the checkpoint's, for benchmarks. Torch only.
    """

    model: Path
    name: str
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 512
    max_model_len: int | None = None
    block_size: int = 32
    kv_cache_bytes: int | None = None
    memory_bytes: int | None = None
    weights: WeightMode = "stored"
    kv_dtype: KvDtype = "auto"
    state_slots: int | None = None
    state_interval: int = DEFAULT_STATE_INTERVAL
    window_blocks: int | None = None
    swap_bytes: int = 0
    swap_dir: Path | None = None
    weight_cache_bytes: int = 0
    weight_cache_dir: Path | None = None
    needs_weight_cache: bool = False
    prefix_caching: bool = True
    scheduling: Scheduling = field(default_factory=Scheduling)
    speculation: bool | None = None
    draft_model: Path | None = None
    generation_config: GenerationConfig = "auto"
    max_queue: int = 1024
    max_hold_s: float = DEFAULT_MAX_HOLD_S
    niceness: int = 0
    threads: int | None = None
    dispatch: DispatchLevel = "auto"
    executor: ExecutorChoice = "auto"
    device: Device = "auto"
    dtype: DtypeChoice = "auto"
    attention: AttentionBackend = "auto"
    cuda_graphs: bool | None = None
    dummy_weights: bool = False
