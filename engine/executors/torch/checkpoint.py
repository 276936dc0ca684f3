"""Weights into a transformers model: from safetensors, or seeded random ones.

Pickled checkpoints are never read, code beside the weights never runs, and nothing is downloaded.
"""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from engine.api.error_text import first_line
from engine.api.errors import ModelError
from engine.executors.torch.attention import IMPLEMENTATION

_MODELS: Any = AutoModelForCausalLM  # its annotations lag behind its behaviour
DUMMY_SEED = 0


def load_checkpoint(
    directory: Path, config: PreTrainedConfig, *, dtype: torch.dtype, device: torch.device
) -> torch.nn.Module:
    """The model with the directory's weights.

    Raises:
        ModelError: a weight is missing or misshapen, or the format needs what is not here.
    """
    try:
        model, report = _MODELS.from_pretrained(
            directory,
            config=config,
            dtype=dtype,
            attn_implementation=IMPLEMENTATION,
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
    """The model with random weights, the same for the same configuration, device and torch.

    Raises:
        ModelError: transformers cannot build it.
    """
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices), device:
        torch.manual_seed(DUMMY_SEED)
        try:
            model = _MODELS.from_config(config, attn_implementation=IMPLEMENTATION, dtype=dtype)
        except Exception as error:
            raise ModelError(
                f"transformers cannot build a {config.model_type!r} model: {first_line(error)}."
            ) from error
    return _ready(model, device)


def weight_bytes(model: torch.nn.Module) -> int:
    """Memory the weights take; a tensor used twice counts once."""
    storages = {
        tensor.data_ptr(): tensor.nbytes for tensor in (*model.parameters(), *model.buffers())
    }
    return sum(storages.values())


def _check_complete(directory: Path, report: dict[str, Any]) -> None:
    """Transformers fills in missing weights at random and only warns; we refuse."""
    for kind in ("missing_keys", "mismatched_keys"):
        for name in sorted(map(str, report.get(kind) or ())):
            raise ModelError(f"{directory}: {kind.replace('_keys', ' weight')} {name[:80]}.")


def _ready(model: Any, device: torch.device) -> torch.nn.Module:
    ready: torch.nn.Module = model.to(device).eval().requires_grad_(False)
    return ready
