"""`gated`: the activation of a gated MLP and its product with the other half, in one kernel."""

import torch
import triton

from engine.executors.torch.fused_kernels import gate_kernel

_TILE = 1024


def gated(both: torch.Tensor, activation: str) -> torch.Tensor:
    """activation(gate) × up: [..., 2 × size] → [..., size].

    Args:
        both: contiguous; the gate is its first half.
        activation: silu, gelu_tanh or gelu.
    """
    size = both.shape[-1] // 2
    output = both.new_empty(*both.shape[:-1], size)
    tokens = output.numel() // size
    if tokens:
        grid = (tokens, triton.cdiv(size, _TILE))
        gate_kernel[grid](both, output, SIZE=size, TILE=_TILE, ACTIVATION=activation)
    return output
