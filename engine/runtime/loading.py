"""Opens and loads a model from an `EngineConfig`: headers first, weights later.

Opening reads headers and vocabulary, which is fast and enough to accept requests; loading reads the
weights.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from engine.api.config import EngineConfig, KvDtype
from engine.api.errors import ModelError
from engine.api.generation_defaults import GenerationDefaults
from engine.api.snapshot import ModelInfo
from engine.batch.sampling_validator import SamplingValidator
from engine.executors.base import Executor, ExecutorInfo
from engine.executors.memory_plan import MemoryPlan
from engine.executors.native_settings import FLOAT_FORMATS, native_kv_dtype
from engine.executors.onnx.settings import onnx_kv_dtype
from engine.memory.host import available_memory, resident_anonymous_memory
from engine.memory.kv_cache_config import KVCacheConfig, fits_whole, size_pool
from engine.models.content_digest import content_digest
from engine.models.onnx_spec import OnnxSpec
from engine.models.spec import ModelSpec
from engine.models.transformers_spec import TransformersSpec
from engine.runtime.draft_headers import DraftHeaders, read_draft_headers, with_draft
from engine.text.sequence_breakers import BreakerCompiler

if TYPE_CHECKING:
    from engine.executors.open_model import OpenModel

_log = logging.getLogger(__name__)

ModelOpener = Callable[[EngineConfig], "OpenModel"]
FreeMemory = Callable[["OpenModel", EngineConfig], int | None]
"""Returns the free bytes of the device that will hold a model; None if they are unknown."""


class ExecutorFactory(Protocol):
    """Loads weights. Called on the engine's thread; may take long and reports its progress in [0, 1]."""

    def __call__(
        self,
        model: "OpenModel",
        config: EngineConfig,
        *,
        num_blocks: int,
        max_model_len: int,
        progress: Callable[[float], None],
    ) -> Executor:
        """An executor for the model, with KV storage for `num_blocks` blocks.

        For a model with recurrent layers it is a `StateKeeper` with `config.state_slots` slots. If
        `config.window_blocks` is not 0, it is a `WindowKeeper` with so many window blocks.
        """
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A model whose headers were read, and the settings derived from them.

    Attributes:
        model: headers, vocabulary and paths.
        max_model_len: maximum number of tokens of a request, prompt and output.
        memory: the memory that weights, work buffers and a KV block will take.
        kv_cache: geometry of the KV pool.
        kv_dtype: element type of the KV pool; never `auto`.
        sampling_validator: checks and packs sampling parameters.
        breakers: compiles sequence breakers.
        draft: the draft model; None without one. `memory` includes it.
        needs_weight_cache: whether the model is larger than memory, and experts are read from the weight
            cache when they are chosen.
    """

    model: "OpenModel"
    max_model_len: int
    memory: MemoryPlan
    kv_cache: KVCacheConfig
    kv_dtype: KvDtype
    sampling_validator: SamplingValidator
    breakers: BreakerCompiler
    draft: DraftHeaders | None = None
    needs_weight_cache: bool = False

    @property
    def total_bytes(self) -> int:
        """Bytes of weights, work buffers and KV pool; of weights larger than memory, what stays there."""
        memory = self.memory
        weights = memory.resident_bytes if self.needs_weight_cache else memory.weight_bytes
        return weights + memory.work_bytes + self.kv_cache.pool_bytes


@dataclass(frozen=True, slots=True)
class Headers:
    """A model whose headers and vocabulary were read; its KV pool has no size yet.

    Attributes: as those of `Opened`.
    """

    model: "OpenModel"
    max_model_len: int
    memory: MemoryPlan
    kv_dtype: KvDtype
    draft: DraftHeaders | None = None


def open_with_headers(
    config: EngineConfig, opener: ModelOpener, find_free: FreeMemory | None = None
) -> Opened:
    """Read headers and vocabulary; determine the context length and the KV pool.

    Raises:
        ModelError: the model is unusable, a setting is out of range, or model and KV pool do not fit in
            memory.
    """
    headers = read_headers(config, opener)
    return with_pool(headers, config, available=(find_free or free_memory)(headers.model, config))


def read_headers(config: EngineConfig, opener: ModelOpener) -> Headers:
    """Read headers and vocabulary.

    Raises:
        ModelError: the model is unusable, or a setting is out of range.
    """
    _check_limits(config)
    model = opener(config)
    max_model_len = context_length(model, config)
    kv_dtype = resolve_kv_dtype(model, config)
    memory = model.plan_memory(config, kv_dtype=kv_dtype, max_model_len=max_model_len)
    if memory.state_bytes and config.draft_model is not None:
        raise ModelError(
            f"{config.name} has recurrent layers, for which no draft model is supported: load it without "
            "--draft-model."
        )
    draft = None
    if config.draft_model is not None:
        draft = read_draft_headers(config, opener, target=model, max_model_len=max_model_len)
        memory = with_draft(memory, draft)
    return Headers(model, max_model_len, memory, kv_dtype, draft)


def pool_of(headers: Headers, config: EngineConfig, *, available: int | None) -> KVCacheConfig:
    """The geometry of the model's KV pool with `available` bytes of free memory; None if unknown.

    Raises:
        ModelError: model and KV pool do not fit in memory.
    """
    return size_pool(
        headers.memory,
        model=config.name
        if headers.draft is None
        else f"{config.name} with its draft model {headers.draft.model.name}",
        block_size=config.block_size,
        context_length=headers.max_model_len,
        requested_bytes=config.kv_cache_bytes,
        available=available,
        limit=config.memory_bytes,
        max_rows=config.max_num_seqs,
        state_slots=config.state_slots,
        state_interval=config.state_interval,
        token_budget=config.max_num_batched_tokens,
        window_blocks=config.window_blocks,
        can_quantize=isinstance(headers.model.spec, ModelSpec)
        and headers.memory.weight_format in FLOAT_FORMATS,
    )


def with_pool(headers: Headers, config: EngineConfig, *, available: int | None) -> Opened:
    """The model with a KV pool for `available` bytes of free memory; None if they are unknown.

    Raises:
        ModelError: model and KV pool do not fit in memory.
    """
    model, memory, kv_dtype = headers.model, headers.memory, headers.kv_dtype
    max_model_len = headers.max_model_len
    kv_cache = pool_of(headers, config, available=available)
    needs_weight_cache = not fits_whole(
        memory, kv_cache, available=available, limit=config.memory_bytes
    )
    if needs_weight_cache:
        _log.info(
            "The model is larger than memory: %.1f MiB of its weights stay there, and experts are read from "
            "the weight cache when they are chosen.",
            memory.resident_bytes / 2**20,
        )
    _log.info(
        "Weights %.1f MiB in %s, work buffers %.1f MiB; KV pool: %d blocks of %d tokens, %.1f MiB, %s; "
        "%d recurrent states, %d window blocks; context %d tokens.",
        memory.weight_bytes / 2**20,
        memory.weight_format,
        memory.work_bytes / 2**20,
        kv_cache.num_blocks,
        kv_cache.block_size,
        kv_cache.pool_bytes / 2**20,
        kv_dtype,
        kv_cache.num_state_slots,
        kv_cache.num_window_blocks,
        max_model_len,
    )
    vocab_size = model.spec.vocab_size
    return Opened(
        model=model,
        max_model_len=max_model_len,
        memory=memory,
        kv_cache=kv_cache,
        kv_dtype=kv_dtype,
        sampling_validator=SamplingValidator(vocab_size),
        breakers=BreakerCompiler(model.tokenizer, vocab_size),
        draft=headers.draft,
        needs_weight_cache=needs_weight_cache,
    )


def context_length(model: "OpenModel", config: EngineConfig) -> int:
    """Maximum number of tokens of a request: the setting, or the model's own.

    Raises:
        ModelError: the setting is longer than the model supports, or has no room for an answer.
    """
    trained = model.spec.context_length
    max_model_len = config.max_model_len or trained
    if max_model_len > trained:
        raise ModelError(
            f"The context of {max_model_len} tokens (--ctx) is longer than the {trained} that "
            f"{config.name} supports."
        )
    if max_model_len < 2:
        raise ModelError(f"The context (--ctx) must hold at least 2 tokens, not {max_model_len}.")
    return max_model_len


def resolve_kv_dtype(model: "OpenModel", config: EngineConfig) -> KvDtype:
    """Element type of the KV cache, `auto` resolved.

    Raises:
        ModelError: the model's executor does not support the type.
    """
    if isinstance(model.spec, TransformersSpec):
        return model.spec.compute_dtype if config.kv_dtype == "auto" else config.kv_dtype
    if isinstance(model.spec, OnnxSpec):
        return onnx_kv_dtype(config.kv_dtype, model.spec)
    return native_kv_dtype(config.kv_dtype, model.spec, model.weight_format, config.weights)


def active_parameters(model: "OpenModel") -> int | None:
    """Number of a model's weights that a token uses; None for a model without experts."""
    if not isinstance(model.spec, ModelSpec):
        return None
    return model.spec.active_parameters(model.parameters)


def free_memory(model: "OpenModel", config: EngineConfig) -> int | None:
    """Free bytes of the device that will hold the model and its KV cache; None if they are unknown."""
    free = _free_gpu_memory(model, config)
    if free is not None:
        return free
    try:
        return available_memory()
    except OSError:
        return None


def memory_after_unloading(
    model: "OpenModel",
    config: EngineConfig,
    loaded: Opened | None,
    find_free: FreeMemory = free_memory,
) -> int | None:
    """Free bytes for a model once the loaded one is unloaded, estimated; None if they are unknown.

    In main memory the loaded model gives back at most what this process holds in anonymous pages: pages
    of its files, such as mapped weights, count as free already, and pages of its pool that were never written
    take no memory. With mapped weights the interpreter's own pages may be counted, too.
    """
    free = find_free(model, config)
    if free is None or loaded is None:
        return free
    on_gpu = is_on_gpu(model, config)
    if on_gpu is not is_on_gpu(loaded.model, config):
        return free
    held = loaded.total_bytes
    return free + (held if on_gpu else min(held, resident_anonymous_memory()))


def is_on_gpu(model: "OpenModel", config: EngineConfig) -> bool:
    """Whether a GPU's memory will hold the model."""
    return _free_gpu_memory(model, config) is not None


def _free_gpu_memory(model: "OpenModel", config: EngineConfig) -> int | None:
    """Free bytes of the GPU that will hold the model; None if main memory will."""
    if not isinstance(model.spec, TransformersSpec):
        return None
    from engine.executors.torch.devices import free_device_memory, resolve_device

    return free_device_memory(resolve_device(config.device))


def _check_limits(config: EngineConfig) -> None:
    """Raise `ModelError` if a setting is outside its supported range."""
    limits = {
        "max_num_seqs": (config.max_num_seqs, 1, 65_536),
        "max_num_batched_tokens": (config.max_num_batched_tokens, 1, 2**20),
        "max_queue": (config.max_queue, 1, 2**20),
        "block_size": (config.block_size, 1, 255),
    }
    for name, (value, low, high) in limits.items():
        if not low <= value <= high:
            raise ModelError(f"{name} must be between {low:,} and {high:,}, not {value:,}.")


def describe(config: EngineConfig, opened: Opened, executor: ExecutorInfo) -> ModelInfo:
    """Description of the loaded model, for display and metrics."""
    spec = opened.model.spec
    return ModelInfo(
        name=config.name,
        architecture=spec.architecture,
        parameters=opened.model.parameters,
        weight_format=executor.weight_format,
        kv_dtype=executor.kv_dtype,
        context_length=opened.max_model_len,
        vocab_size=spec.vocab_size,
        weight_bytes=executor.weight_bytes,
        executor=executor.kind,
        dispatch=executor.dispatch,
        threads=executor.threads,
        generation_defaults=opened.model.generation_defaults
        if config.generation_config == "auto"
        else GenerationDefaults(),
        sees_images=opened.model.images is not None,
        draft_model=None if opened.draft is None else opened.draft.model.name,
        digest=content_digest(opened.model.paths),
        continues_text=opened.model.tokenizer.continues_text,
        active_parameters=active_parameters(opened.model),
        active_bytes=opened.memory.active_bytes,
    )


def open_from_disk(config: EngineConfig) -> "OpenModel":
    """The default opener: a GGUF file, a safetensors directory or a model in ONNX."""
    from engine.executors.open_model import open_model

    return open_model(config.model, config)


def load_executor(
    model: "OpenModel",
    config: EngineConfig,
    *,
    num_blocks: int,
    max_model_len: int,
    progress: Callable[[float], None],
) -> Executor:
    """The default executor factory: the executor that the class of the model's spec stands for."""
    if isinstance(model.spec, TransformersSpec):
        from engine.executors.torch.executor import TorchExecutor

        return TorchExecutor.load(
            model.spec,
            config,
            num_blocks=num_blocks,
            max_model_len=max_model_len,
            weight_format=model.weight_format,
            parameters=model.parameters,
            progress=progress,
            images=model.images,
        )
    if isinstance(model.spec, OnnxSpec):
        from engine.executors.onnx.executor import OnnxExecutor

        return OnnxExecutor.load(
            model.spec,
            model.paths[0],
            config,
            num_blocks=num_blocks,
            max_model_len=max_model_len,
            weight_format=model.weight_format,
            weight_bytes=model.weight_bytes,
            parameters=model.parameters,
            progress=progress,
        )
    from engine.executors.native import NativeExecutor

    executor: Executor = NativeExecutor.load(
        model.spec,
        model.paths,
        replace(config, kv_dtype=resolve_kv_dtype(model, config)),
        num_blocks=num_blocks,
        max_model_len=max_model_len,
        progress=progress,
    )
    return executor
