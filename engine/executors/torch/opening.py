"""Builds the spec of a model for the torch executor, without reading its weights."""

from pathlib import Path

import torch

from engine.api.config import ComputeDtype, EngineConfig
from engine.api.errors import ModelError
from engine.executors.torch.hf_config import context_length, read_config, sees_images
from engine.executors.torch.image_processor import ImageProcessor
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
        directory: contains config.json.
        settings: the compute type, and settings that the torch executor may not support.
        stored: element type of most stored weights; None if there are no weight files.

    Raises:
        ModelError: the model cannot run with torch, or a setting needs the native executor.
    """
    if settings.kv_dtype == "int8":
        raise ModelError(
            "kv_dtype int8 needs the native executor, but this model runs with torch: use another."
        )
    if settings.weights != "stored":
        raise ModelError(
            f"weights {settings.weights} needs the native executor, but this model runs with torch: "
            "leave it out."
        )
    if settings.dispatch != "auto":
        raise ModelError(
            f"dispatch {settings.dispatch} needs the native executor, but this model runs with torch."
        )
    config = read_config(directory)
    text = config.get_text_config()
    kv_layers, parameters = probe(config)
    declared = config.dtype if isinstance(config.dtype, torch.dtype) else None
    compute = settings.dtype
    if compute == "auto":
        # Quantised checkpoints store integers; the configuration declares their original type.
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
        sees_images=sees_images(config),
    )
    return spec, parameters


def read_image_processor(directory: Path, spec: TransformersSpec) -> ImageProcessor | None:
    """The image processor of a model directory; None if the model is run on text alone.

    Raises:
        ModelError: it is missing, or cannot be used.
    """
    if not spec.sees_images:
        return None
    return ImageProcessor.load(directory, read_config(directory), vocab_size=spec.vocab_size)
