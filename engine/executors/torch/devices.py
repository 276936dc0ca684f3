"""Maps the device and data type names of `EngineConfig` to torch objects."""

import torch

from engine.api.config import ComputeDtype, Device, KvDtype
from engine.api.errors import ModelError

DTYPES: dict[str, torch.dtype] = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
}


def resolve_device(name: Device) -> torch.device:
    """The torch device of a name; `auto` is a GPU if there is one, else the CPU.

    Raises:
        ModelError: `name` is `cuda` and torch sees no GPU.
    """
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ModelError("device is cuda, but torch sees no GPU: use device cpu.")
    return torch.device("cuda", torch.cuda.current_device())


def free_device_memory(device: torch.device) -> int | None:
    """Free bytes of a GPU; None for the CPU (see `engine.memory.host`)."""
    if device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(device)
    return int(free)


def kv_dtype_of(kv_dtype: KvDtype, compute: ComputeDtype) -> torch.dtype:
    """Element type of the KV cache; `auto` is the compute type."""
    return DTYPES[compute if kv_dtype == "auto" else kv_dtype]
