"""Builds transformers models with weights from safetensors files or with seeded random weights.

Pickled checkpoints are never read, code in the model directory is never run, and nothing is
downloaded.
"""

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedConfig

from engine.api.error_text import first_line
from engine.api.errors import ModelError
from engine.executors.torch.attention import IMPLEMENTATION
from engine.executors.torch.hf_config import attention_setting, auto_class

DUMMY_SEED = 0


def load_checkpoint(
    directory: Path, config: PreTrainedConfig, *, dtype: torch.dtype, device: torch.device
) -> torch.nn.Module:
    """Load a model with the directory's weights.

    Raises:
        ModelError: a weight is missing or has the wrong shape, or transformers cannot load the format.
    """
    try:
        model, report = auto_class(config).from_pretrained(
            directory,
            config=config,
            dtype=dtype,
            attn_implementation=attention_setting(config, IMPLEMENTATION),
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except Exception as error:  # the quantisers and loaders raise many kinds
        raise ModelError(f"transformers cannot load {directory}: {first_line(error)}.") from error
    _check_complete(directory, report)
    return _ready(model, device)


def dummy_model(
    config: PreTrainedConfig, *, dtype: torch.dtype, device: torch.device
) -> torch.nn.Module:
    """Build a model with random weights, reproducible for a configuration, device and torch version.

    Raises:
        ModelError: transformers cannot build it.
    """
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices), device:
        torch.manual_seed(DUMMY_SEED)
        try:
            model = auto_class(config).from_config(
                config, attn_implementation=attention_setting(config, IMPLEMENTATION), dtype=dtype
            )
        except Exception as error:
            raise ModelError(
                f"transformers cannot build a {config.model_type!r} model: {first_line(error)}."
            ) from error
    return _ready(model, device)


def weight_bytes(model: torch.nn.Module) -> int:
    """Bytes of parameters and buffers; shared tensors count once."""
    storages = {
        tensor.data_ptr(): tensor.nbytes for tensor in (*model.parameters(), *model.buffers())
    }
    return sum(storages.values())


def _check_complete(directory: Path, report: dict[str, Any]) -> None:
    """Raise for missing or mismatched weights, which transformers would initialise at random."""
    for kind in ("missing_keys", "mismatched_keys"):
        for name in sorted(map(str, report.get(kind) or ())):
            raise ModelError(f"{directory}: {kind.replace('_keys', ' weight')} {name[:80]}.")


def _ready(model: Any, device: torch.device) -> torch.nn.Module:
    ready: torch.nn.Module = model.to(device).eval().requires_grad_(False)
    return ready
