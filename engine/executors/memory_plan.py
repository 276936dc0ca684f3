"""`MemoryPlan`: the memory that an executor will take, computed from headers before weights are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.api.config import EngineConfig, KvDtype
from engine.api.errors import ModelError
from engine.executors import expert_file
from engine.models.onnx_spec import OnnxSpec
from engine.models.spec import ModelSpec
from engine.models.transformers_spec import TransformersSpec

_FLOAT_BYTES: dict[KvDtype, int] = {"f16": 2, "bf16": 2, "f32": 4}
_IMAGE_CACHE_BYTES = 64 << 20
"""`CACHE_BYTES` of `engine.executors.torch.image_features`, which imports torch."""
_UNQUANTISED = frozenset({"F32", "F16", "BF16", "dummy"})


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Sizes in bytes, apart from the KV pool, whose size is chosen from what they leave free.

    Attributes:
        weight_bytes: the weights as they will be held in memory, or mapped.
        weight_format: type of most weights in memory, such as `Q4_K`.
        work_bytes: the buffers of a step, all of which the largest steps touch.
        block_bytes: a KV block: keys, values, scales and padding of all layers.
        window_block_bytes: of these, in layers that need to keep a window only; 0 if there are none.
        window: tokens of the largest of their windows.
        state_bytes: the recurrent state of one sequence, of all layers; 0 for a model without recurrent ones.
        active_bytes: the weights that a token uses: all but the experts that it does not choose. None for a
            model without experts.
        shortage: why experts cannot be read from the weight cache when they are chosen, and what to do; empty
            if they can.
    """

    weight_bytes: int
    work_bytes: int
    block_bytes: int
    weight_format: str
    window_block_bytes: int = 0
    window: int = 0
    state_bytes: int = 0
    active_bytes: int | None = None
    shortage: str = ""

    @property
    def resident_bytes(self) -> int:
        """Bytes of the weights that have to stay in memory: all, or `active_bytes`."""
        if self.active_bytes is None or self.shortage:
            return self.weight_bytes
        return self.active_bytes


def plan_native(
    spec: ModelSpec,
    paths: Sequence[Path],
    config: EngineConfig,
    *,
    kv_dtype: KvDtype,
    max_model_len: int,
) -> MemoryPlan:
    """The memory of the native executor. Exact: computed by the code that will allocate it.

    Args:
        spec: the model's shapes.
        paths: its weight files.
        config: weight mode, weight cache, threads, block size and step limits.
        kv_dtype: element type of the KV cache; not `auto`.
        max_model_len: longest sequence.

    Raises:
        ModelError: files, spec or configuration cannot be used.
    """
    from engine import _core

    try:
        plan = _core.plan_memory(
            spec.to_json(),
            list(paths),
            block_size=config.block_size,
            weights=config.weights,
            kv_dtype=kv_dtype,
            threads=config.threads,
            max_rows=config.max_num_seqs,
            max_batched_tokens=config.max_num_batched_tokens,
            max_model_len=max_model_len,
        )
        if not spec.has_experts:
            return MemoryPlan(**plan | {"active_bytes": None})
        return MemoryPlan(**plan, shortage=expert_file.shortage(spec, paths, config))
    except (ValueError, MemoryError) as error:
        raise ModelError(str(error)) from error


def plan_torch(
    spec: TransformersSpec,
    *,
    weight_format: str,
    parameters: int,
    file_bytes: int,
    kv_dtype: KvDtype,
    block_size: int,
) -> MemoryPlan:
    """The memory of the torch executor: its weights and KV blocks. Activations are not known beforehand.

    Args:
        spec: the model's shapes.
        weight_format: type of most stored weights.
        parameters: number of weights.
        file_bytes: size of the weight files, which quantised weights take in memory too.
        kv_dtype: element type of the KV cache; not `auto`.
        block_size: tokens per KV block.
    """
    element_bytes = 4 if spec.compute_dtype == "f32" else 2
    block_bytes = spec.kv_elements_per_token * _FLOAT_BYTES[kv_dtype] * block_size
    unquantised = weight_format in _UNQUANTISED
    image_bytes = _IMAGE_CACHE_BYTES if spec.sees_images else 0
    return MemoryPlan(
        weight_bytes=parameters * element_bytes if unquantised else file_bytes,
        # The pool's scratch block, which padding rows write to, and the embeddings of images.
        work_bytes=block_bytes + image_bytes,
        block_bytes=block_bytes,
        weight_format=spec.compute_dtype.upper() if unquantised else weight_format,
    )


def plan_onnx(
    spec: OnnxSpec,
    config: EngineConfig,
    *,
    weight_format: str,
    weight_bytes: int,
    max_model_len: int,
) -> MemoryPlan:
    """The memory of the ONNX executor: weights, KV blocks, and what goes into and comes out of a call.

    A call takes a copy of the keys and values of its sequences, together at most one full context, and
    returns another with the new tokens in it. Most graphs give the logits of every new token. Activations
    are not known beforehand.

    Args:
        spec: the model's sizes.
        config: block size and step limits.
        weight_format: type of most weights.
        weight_bytes: bytes of the stored weights.
        max_model_len: longest sequence.
    """
    element_bytes = _FLOAT_BYTES[spec.kv_dtype]
    token_bytes = spec.kv_elements_per_token * element_bytes
    logits = config.max_num_batched_tokens * spec.vocab_size * _FLOAT_BYTES["f32"]
    return MemoryPlan(
        weight_bytes=weight_bytes,
        work_bytes=2 * max_model_len * token_bytes + logits,
        block_bytes=token_bytes * config.block_size,
        weight_format=weight_format,
    )
