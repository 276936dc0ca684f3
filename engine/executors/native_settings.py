"""Settings of the native executor: its KV type, and settings it does not support. Imports no Rust."""

from engine.api.config import EngineConfig, KvDtype, WeightMode
from engine.api.errors import ModelError
from engine.models.spec import ModelSpec

FLOAT_FORMATS = frozenset({"F32", "F16", "BF16"})
_WIDE_HEAD = 128
"""Head dimensions up to which one scale for a key is measured to be enough."""


def native_kv_dtype(
    kv_dtype: KvDtype, spec: ModelSpec, weight_format: str, weights: WeightMode = "stored"
) -> KvDtype:
    """Element type of the native executor's KV cache.

    `auto` is int8 for quantised weights: its error is smaller than theirs, and attention reads half the
    bytes. It is f16 for float weights, whose users want exact results, for models whose keys have a bias
    (Qwen2): it makes a few channels so large that one scale per key leaves the others few bits, and for
    heads of more than 128 dimensions, which share one scale (Gemma 3 270M: mean KL 0.010 with int8, 0.006
    with f16).

    Args:
        kv_dtype: the setting.
        spec: the model's shapes.
        weight_format: type of most of its stored weights.
        weights: whether float weights are quantized while they are loaded.

    Raises:
        ModelError: the native executor does not support the type.
    """
    if kv_dtype == "bf16":
        raise ModelError(
            "kv_dtype bf16 needs the torch executor; the native executor supports f16, f32 and int8."
        )
    if kv_dtype != "auto":
        return kv_dtype
    in_floats = weight_format in FLOAT_FORMATS and weights == "stored"
    wide = any(attention.head_dim > _WIDE_HEAD for attention in spec.attentions)
    return "f16" if spec.has_key_bias or wide or in_floats else "int8"


def reject_torch_settings(config: EngineConfig) -> None:
    """Reject settings that only the torch executor supports.

    Raises:
        ModelError: naming the first such setting.
    """
    torch_only = {
        "device cuda": config.device == "cuda",
        f"dtype {config.dtype}": config.dtype != "auto",
        f"attention {config.attention}": config.attention != "auto",
        "cuda_graphs": config.cuda_graphs,
        "dummy_weights": config.dummy_weights,
    }
    for name, given in torch_only.items():
        if given:
            raise ModelError(f"{name} needs the torch executor, but this model runs natively.")
