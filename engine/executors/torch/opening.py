"""What the torch executor can tell of a model before its weights are read."""

from pathlib import Path

import torch

from engine.api.config import ComputeDtype, EngineConfig
from engine.api.errors import ModelError
from engine.executors.torch.hf_config import context_length, read_config
from engine.executors.torch.probe import probe
from engine.models.transformers_spec import TransformersSpec

_STORED: dict[str, ComputeDtype] = {"F32": "f32", "F16": "f16", "BF16": "bf16"}
_DECLARED: dict[torch.dtype, ComputeDtype] = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
}


def read_spec(
    directory: Path, settings: EngineConfig, *, stored: str | None
) -> tuple[TransformersSpec, int]:
    """The spec of a model directory, and its number of parameters.

    Args:
        directory: holds config.json.
        settings: the type to compute in, and settings the torch executor cannot obey.
        stored: element type that prevails in the weight files; None if there are none.

    Raises:
        ModelError: the model cannot run here, or a setting is the native executor's.
    """
    if settings.kv_dtype == "int8":
        raise ModelError(
            "kv_dtype int8 is the native executor's, and this model runs with torch: choose another."
        )
    if settings.dispatch != "auto":
        raise ModelError(
            f"dispatch {settings.dispatch} is the native executor's, and this model runs with "
            "torch."
        )
    config = read_config(directory)
    text = config.get_text_config()
    kv_layers, parameters = probe(config)
    declared = config.dtype if isinstance(config.dtype, torch.dtype) else None
    compute = settings.dtype
    if compute == "auto":
        # Quantised checkpoints store integers; what they were quantised from is declared.
        fallback = _DECLARED.get(declared, "f32") if declared is not None else "f32"
        compute = _STORED.get(stored or "", fallback)
    spec = TransformersSpec(
        architecture=config.model_type,
        num_layers=len(kv_layers),
        hidden_size=text.hidden_size,
        vocab_size=text.vocab_size,
        context_length=context_length(config),
        kv_layers=kv_layers,
        compute_dtype=compute,
    )
    return spec, parameters
