"""`agree`: whether a fused module computes what the module it replaces computes."""

from collections.abc import Callable

import torch

_TOLERANCE = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}
"""Largest error of a row, relative to the row's norm, that rounding explains."""


def agree(expected: Callable[[], torch.Tensor], got: Callable[[], torch.Tensor]) -> bool:
    """Compare two computations, row by row along the last dimension.

    False if `expected` raises: modules of transformers are of many kinds, and one that cannot be called
    like this is not replaced.
    """
    with torch.inference_mode():
        try:
            one = expected()
        except torch.OutOfMemoryError:
            raise
        except Exception:
            return False
        other = got()
    if one.shape != other.shape or one.dtype != other.dtype or one.dtype not in _TOLERANCE:
        return False
    norms = one.float().norm(dim=-1)
    errors = (one.float() - other.float()).norm(dim=-1)
    return bool((errors <= _TOLERANCE[one.dtype] * norms).all())
