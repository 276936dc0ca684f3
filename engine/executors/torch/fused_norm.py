"""`fused_norm`: an RMSNorm of transformers as one kernel instead of eight."""

import torch
import triton

from engine.executors.torch.fused_kernels import add_norm_kernel, rms_norm_kernel
from engine.executors.torch.fusion_check import agree

_OFFSETS = (0.0, 1.0)
"""What is added to the weight: nothing in most models, one in Gemma's."""


class FusedRmsNorm(torch.nn.Module):
    """RMSNorm over the last dimension, times `offset` + weight."""

    def __init__(self, weight: torch.nn.Parameter, eps: float, offset: float) -> None:
        """Take over a norm's weight."""
        super().__init__()
        self.weight = weight
        self.variance_epsilon = eps
        self.offset = offset

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Normalise: [..., size] → the same shape, contiguous."""
        return rms_norm(hidden_states, self.weight, self.variance_epsilon, self.offset)


def fused_norm(module: torch.nn.Module, dtype: torch.dtype) -> FusedRmsNorm | None:
    """The fused form of a module whose class is named …RMSNorm; None if it computes something else.

    It is compared with the module itself, on rows small enough for epsilon to matter among others.

    Args:
        module: any module.
        dtype: type of the model's activations.
    """
    weight = getattr(module, "weight", None)
    eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    if (
        not type(module).__name__.endswith("RMSNorm")
        or not isinstance(weight, torch.nn.Parameter)
        or weight.ndim != 1
        or not isinstance(eps, float)
    ):
        return None
    scales = torch.tensor([[1e-3], [1.0], [30.0]], dtype=dtype, device=weight.device)
    rows = scales * torch.randn(3, len(weight), dtype=dtype, device=weight.device)
    for offset in _OFFSETS:
        fused = FusedRmsNorm(weight, eps, offset)
        if agree(lambda: module(rows[None]), lambda: fused(rows[None])):  # noqa: B023 (called at once)
            return fused
    return None


def rms_norm(source: torch.Tensor, weight: torch.Tensor, eps: float, offset: float) -> torch.Tensor:
    """X / √(mean(x²) + eps) × (offset + weight) over the last dimension."""
    size = source.shape[-1]
    output = torch.empty(source.shape, dtype=source.dtype, device=source.device)
    rows = source.numel() // size
    if not rows:
        return output
    # Queries and keys that are parts of one projection have rows at two strides.
    if source.dim() < 3 or source.stride(-1) != 1 or source.shape[:-3].numel() != 1:
        source = source.contiguous()
    inner, outer_stride, inner_stride = 1, size, 0
    if not source.is_contiguous():  # if it is, strides of dimensions of size 1 may be anything
        inner, outer_stride, inner_stride = source.shape[-2], source.stride(-3), source.stride(-2)
    padded = triton.next_power_of_2(size)
    rms_norm_kernel[(rows,)](
        source,
        weight,
        output,
        inner,
        outer_stride,
        inner_stride,
        eps,
        offset,
        SIZE=size,
        PADDED=padded,
        num_warps=_warps(padded),
    )
    return output


def add_rms_norm(
    residual: torch.Tensor, added: torch.Tensor, norm: FusedRmsNorm
) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum of two tensors of one shape and type, [..., size], and its norm."""
    size = residual.shape[-1]
    residual, added = residual.contiguous(), added.contiguous()
    sums, output = torch.empty_like(residual), torch.empty_like(residual)
    rows = residual.numel() // size
    padded = triton.next_power_of_2(size)
    if rows:
        add_norm_kernel[(rows,)](
            residual,
            added,
            norm.weight,
            sums,
            output,
            norm.variance_epsilon,
            norm.offset,
            SIZE=size,
            PADDED=padded,
            num_warps=_warps(padded),
        )
    return sums, output


def _warps(padded: int) -> int:
    return min(8, max(1, padded // 256))
