"""What an engine is started with. Cold settings: changing one means loading again."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from engine.api.scheduling import Scheduling

KvDtype = Literal["auto", "f16", "bf16", "f32", "int8"]
DispatchLevel = Literal["auto", "amx", "avx512", "avx2", "portable"]
ExecutorChoice = Literal["auto", "native", "torch"]
ComputeDtype = Literal["f32", "f16", "bf16"]
DtypeChoice = Literal["auto", "f32", "f16", "bf16"]
Device = Literal["auto", "cpu", "cuda"]
AttentionBackend = Literal["auto", "reference", "triton"]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Engine settings.

    Attributes:
        model: a GGUF file, or a directory with config.json and safetensors.
        name: what the model is called on the screen and over HTTP.
        max_num_seqs: rows, i.e. requests that run at once.
        max_num_batched_tokens: token budget of one step.
        max_model_len: context length; None takes the model's own.
        block_size: tokens in a KV block.
        kv_cache_bytes: size of the KV pool; None takes a share of free memory
            (`engine.memory.kv_cache_config.default_pool_bytes`).
        kv_dtype: element type of the KV cache; `auto` is int8 or f16 in the native executor
            (`engine.executors.native_settings`), and what is computed in with the torch one. `int8`
            (native only) has one scale a token and head.
        swap_bytes: most bytes of KV blocks kept beside the pool; 0 keeps none. They are found by
            their beginnings, so this needs prefix caching.
        swap_dir: folder of the file that keeps them, so that they outlive the process; None keeps
            them in main memory, where those of a GPU's pool are in any case.
        prefix_caching: find prompts' beginnings in the KV pool instead of computing them again.
        scheduling: in what order requests run, and how large a step is; may be switched later.
        speculation: guess next tokens by prompt lookup and check several in a step; it changes the
            speed and no token. Not with cuda_graphs, whose steps compute one token a row.
        max_queue: waiting requests before new ones are refused.
        niceness: how far the engine's threads give way to the process's others, as nice(1) counts; a
            screen in the same process needs that. Linux only.
        threads: compute threads; None takes the physical cores this process may use.
        dispatch: instruction-set level; `auto` takes the best the machine has. Native only.
        executor: `auto` takes the native executor for what it supports, unless a setting below
            asks for torch; torch otherwise.
        device: where the torch executor computes; `auto` takes a GPU if there is one.
        dtype: what the torch executor computes in; `auto` takes the checkpoint's own type.
        attention: the torch executor's attention backend; `auto` takes Triton's on a GPU.
        cuda_graphs: replay decode steps as CUDA graphs. Torch on a GPU only.
        dummy_weights: seeded random weights instead of the checkpoint's, for benchmarks. Torch
            only.
    """

    model: Path
    name: str
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 512
    max_model_len: int | None = None
    block_size: int = 32
    kv_cache_bytes: int | None = None
    kv_dtype: KvDtype = "auto"
    swap_bytes: int = 0
    swap_dir: Path | None = None
    prefix_caching: bool = True
    scheduling: Scheduling = field(default_factory=Scheduling)
    speculation: bool = True
    max_queue: int = 1024
    niceness: int = 0
    threads: int | None = None
    dispatch: DispatchLevel = "auto"
    executor: ExecutorChoice = "auto"
    device: Device = "auto"
    dtype: DtypeChoice = "auto"
    attention: AttentionBackend = "auto"
    cuda_graphs: bool = False
    dummy_weights: bool = False
