"""`fused_rotary`: the rotary embedding of queries and keys as one kernel instead of ten.

Attention layers of transformers call the function `apply_rotary_pos_emb` of their own file between
projections and attention; there is nothing to register for it. So a layer whose function rotates halves is
given a copy of its `forward` that sees the fused function under that name. The library and other models
are unchanged.
"""

import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import torch
import triton

from engine.executors.torch.fused_kernels import rotary_kernel
from engine.executors.torch.fusion_check import agree

_NAME = "apply_rotary_pos_emb"
Rotary = Callable[..., tuple[torch.Tensor, torch.Tensor]]


def fused_rotary(
    module: torch.nn.Module, dtype: torch.dtype, device: torch.device
) -> MethodType | None:
    """A `forward` for an attention layer with the fused function; None if its own is of another kind."""
    forward = inspect.unwrap(type(module).forward)
    if not isinstance(forward, FunctionType) or _NAME not in forward.__code__.co_names:
        return None
    original = forward.__globals__.get(_NAME)
    if not callable(original) or not _rotates_halves(original, dtype, device):
        return None
    names = forward.__globals__ | {_NAME: _with_fallback(original)}
    copy = FunctionType(
        forward.__code__, names, forward.__name__, forward.__defaults__, forward.__closure__
    )
    copy.__kwdefaults__ = forward.__kwdefaults__
    return MethodType(copy, module)


def _rotates_halves(original: Rotary, dtype: torch.dtype, device: torch.device) -> bool:
    """Compare a function with the fused one, on heads that are rotated as a whole."""

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=dtype, device=device)

    query, key = random(1, 3, 5, 16), random(1, 2, 5, 16)
    angles = torch.randn(1, 5, 8, device=device).repeat(1, 1, 2)
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    return all(
        agree(lambda: original(query, key, cos, sin)[at], lambda: rotate(query, key, cos, sin)[at])  # noqa: B023
        for at in (0, 1)
    )


def _with_fallback(original: Rotary) -> Rotary:
    """The fused function, and the original for calls of another form than was compared."""

    def apply_rotary_pos_emb(
        q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, **others: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if others or not _usual(q, k, cos, sin):
            return original(q, k, cos, sin, **others)
        return rotate(q, k, cos, sin)

    return apply_rotary_pos_emb


def _usual(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> bool:
    """Whether these are one sequence's heads, rotated as a whole by angles of their own type."""
    angles = (1, q.shape[-2], q.shape[-1])
    return (
        q.dim() == k.dim() == 4
        and q.shape[0] == k.shape[0] == 1
        and q.shape[2:] == k.shape[2:]
        and cos.shape == sin.shape == angles
        and q.dtype == k.dtype == cos.dtype == sin.dtype
        and all(tensor.stride(-1) == 1 for tensor in (q, k, cos, sin))
    )


def rotate(
    query: torch.Tensor, key: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """X × cos + (-x₂, x₁) × sin for the halves x₁, x₂ of each head.

    Args:
        query: [1, heads, T, size].
        key: [1, KV heads, T, size].
        cos: [1, T, size].
        sin: [1, T, size].

    Returns:
        Queries and keys, of the same shapes, with the tokens in the order [T, heads, size] in memory.
    """
    heads, tokens, size = query.shape[1:]
    kv_heads = key.shape[1]
    rotated_query = query.new_empty(tokens, heads, size)
    rotated_key = key.new_empty(tokens, kv_heads, size)
    if tokens:
        rotary_kernel[(tokens, heads + kv_heads)](
            query,
            key,
            cos,
            sin,
            rotated_query,
            rotated_key,
            heads,
            kv_heads,
            query.stride(2),
            query.stride(1),
            key.stride(2),
            key.stride(1),
            cos.stride(1),
            sin.stride(1),
            HEAD=size,
            PADDED=triton.next_power_of_2(size),
            ROTARY=size,
            num_warps=1,
        )
    return rotated_query.transpose(0, 1)[None], rotated_key.transpose(0, 1)[None]
