"""`to_device` and `to_host`: several arrays in one copy between main memory and a device.

A copy of a few numbers to or from a GPU costs as much as one of many: tens of microseconds with what
torch does around it. Parts are aligned to 16 bytes, which Triton's kernels compile for.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

_ALIGNMENT = 16
_TORCH_TYPES: dict[np.dtype[Any], torch.dtype] = {
    np.dtype(np.bool_): torch.bool,
    np.dtype(np.int32): torch.int32,
    np.dtype(np.int64): torch.int64,
    np.dtype(np.float32): torch.float32,
}


def to_device(arrays: Mapping[str, NDArray[Any]], device: torch.device) -> dict[str, torch.Tensor]:
    """Copy arrays of bool, int32, int64 or float32 to a device.

    On a GPU the copy is ordered before the kernels launched after it and nothing waits for it; the
    arrays may be changed at once.
    """
    ends = np.cumsum([_aligned(array.nbytes) for array in arrays.values()]).tolist()
    if not ends:
        return {}
    # torch keeps pinned memory from being reused until the copies out of it are done.
    staging = torch.empty(ends[-1], dtype=torch.uint8, pin_memory=device.type == "cuda")
    host = staging.numpy()
    starts = [0, *ends[:-1]]
    for start, array in zip(starts, arrays.values(), strict=True):
        part = host[start : start + array.nbytes]
        part.view(array.dtype).reshape(array.shape)[...] = array
    packed = staging.to(device, non_blocking=True)
    return {
        name: packed[start : start + array.nbytes].view(_TORCH_TYPES[array.dtype]).view(array.shape)
        for start, (name, array) in zip(starts, arrays.items(), strict=True)
    }


def to_host(tensors: Mapping[str, torch.Tensor]) -> dict[str, NDArray[Any]]:
    """Copy tensors of one device to main memory; waits until they are computed."""
    if len(tensors) == 1 or all(tensor.device.type == "cpu" for tensor in tensors.values()):
        return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
    parts = [tensor.contiguous().view(-1).view(torch.uint8) for tensor in tensors.values()]
    packed = torch.cat(parts).cpu().numpy()
    arrays, start = {}, 0
    for (name, tensor), part in zip(tensors.items(), parts, strict=True):
        kind = _NUMPY_TYPES[tensor.dtype]
        # A copy, since the part may not be aligned to its type.
        arrays[name] = np.frombuffer(packed[start : start + len(part)].tobytes(), kind).reshape(
            tuple(tensor.shape)
        )
        start += len(part)
    return arrays


_NUMPY_TYPES = {kind: array_type for array_type, kind in _TORCH_TYPES.items()}


def _aligned(count: int) -> int:
    return -(-count // _ALIGNMENT) * _ALIGNMENT
