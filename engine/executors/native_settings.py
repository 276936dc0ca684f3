"""Which of an engine's settings the native executor obeys. Imports no Rust."""

from engine.api.config import EngineConfig, KvDtype
from engine.api.errors import ModelError
from engine.models.spec import ModelSpec

_FLOAT_FORMATS = frozenset({"F32", "F16", "BF16"})


def native_kv_dtype(kv_dtype: KvDtype, spec: ModelSpec, weight_format: str) -> KvDtype:
    """Element type of this executor's KV cache.

    `auto` is int8 where weights are quantised too: what it costs is less than what they did, and attention
    reads half. It is f16 for float weights, whose owner wants exact answers, and where keys have a bias
    (Qwen2), which makes a few channels so large that one scale a key leaves the others few bits.

    Args:
        kv_dtype: what was asked for.
        spec: the model's shapes.
        weight_format: the type of most of its weights.

    Raises:
        ModelError: it has no such type.
    """
    if kv_dtype == "bf16":
        raise ModelError(
            "kv_dtype bf16 is the torch executor's; the native one has f16, f32 and int8."
        )
    if kv_dtype != "auto":
        return kv_dtype
    return "f16" if spec.qkv_bias or weight_format in _FLOAT_FORMATS else "int8"


def refuse_foreign_settings(config: EngineConfig) -> None:
    """Refuse, by name, settings that only the torch executor obeys."""
    foreign = {
        "device cuda": config.device == "cuda",
        f"dtype {config.dtype}": config.dtype != "auto",
        f"attention {config.attention}": config.attention != "auto",
        "cuda_graphs": config.cuda_graphs,
        "dummy_weights": config.dummy_weights,
    }
    for name, given in foreign.items():
        if given:
            raise ModelError(f"{name} needs the torch executor, and this model runs natively.")
