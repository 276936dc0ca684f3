"""What an engine is started with. Cold settings: changing one means loading again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

KvDtype = Literal["f16", "f32"]
DispatchLevel = Literal["auto", "avx512", "avx2", "portable"]


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
            (`engine.memory.kv_cache.default_pool_bytes`).
        kv_dtype: element type of the KV cache.
        prefix_caching: find prompts' beginnings in the KV pool instead of computing them again.
        max_queue: waiting requests before new ones are refused.
        threads: compute threads; None takes the physical cores this process may use.
        dispatch: instruction-set level; `auto` takes the best the machine has.
    """

    model: Path
    name: str
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 512
    max_model_len: int | None = None
    block_size: int = 32
    kv_cache_bytes: int | None = None
    kv_dtype: KvDtype = "f16"
    prefix_caching: bool = True
    max_queue: int = 1024
    threads: int | None = None
    dispatch: DispatchLevel = "auto"
