"""The attention backends, and `choose_backend`, which selects one for a device."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import torch

from engine.api.config import AttentionBackend, EngineConfig
from engine.api.errors import ModelError
from engine.executors.torch.attention import PagedStep
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.reference_attention import ReferenceStep
from engine.executors.torch.step_layout import StepLayout

StepFactory = Callable[[KvPool, StepLayout, torch.device], PagedStep]


@dataclass(frozen=True, slots=True)
class Backend:
    """An attention backend: its name, the factory of its `PagedStep`, and whether kernels are fused."""

    name: str
    step: StepFactory
    fuses: bool = False


REFERENCE = Backend("reference", ReferenceStep)


def choose_backend(name: AttentionBackend, device: torch.device) -> Backend:
    """Select the attention backend.

    Args:
        name: `reference`, `triton`, or `auto`: triton on a GPU if it is installed, else reference.
        device: the device of the KV pool.

    Raises:
        ModelError: the backend cannot run on this device, or triton is not installed.
    """
    if name == "reference" or (name == "auto" and device.type == "cpu"):
        return REFERENCE
    if device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        raise ModelError("attention triton needs a GPU: use attention reference or auto.")
    if find_spec("triton") is None:
        if name == "auto":
            return REFERENCE
        raise ModelError("attention triton needs the triton package, which is not installed.")
    from engine.executors.torch.triton_attention import triton_step

    return Backend("triton", triton_step, fuses=True)


def uses_graphs(config: EngineConfig) -> bool:
    """Whether decode steps are to be replayed as CUDA graphs: as set, else on a GPU with Triton."""
    if config.cuda_graphs is not None:
        return config.cuda_graphs
    on_gpu = config.device != "cpu" and torch.cuda.is_available()
    return on_gpu and config.attention != "reference" and find_spec("triton") is not None
