"""Which of an engine's settings the native executor obeys. Imports no Rust."""

from engine.config import EngineConfig, KvDtype
from engine.errors import ModelError


def native_kv_dtype(kv_dtype: KvDtype) -> KvDtype:
    """Element type of this executor's KV cache; `auto` is f16.

    Raises:
        ModelError: it has no such type.
    """
    if kv_dtype == "bf16":
        raise ModelError(
            "kv_dtype bf16 is the torch executor's; the native one has f16, f32 and int8."
        )
    return "f16" if kv_dtype == "auto" else kv_dtype


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
