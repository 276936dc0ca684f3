"""`SkinnyLinear`: a linear layer with a kernel of its own for one to four rows, where it is faster.

Such a product is a read of the weights. For small weights the matrix kernels of the library take twice as
long as that read; which is faster for a shape is measured when a model is loaded.
"""

import logging
from functools import cache
from typing import Any

import torch
import triton
from torch.nn import functional

from engine.api.error_text import first_line
from engine.executors.torch.fused_gate import gated
from engine.executors.torch.fused_kernels import skinny_kernel
from engine.executors.torch.fusion_check import agree

_log = logging.getLogger(__name__)

MAX_ROWS = 4
_MAX_SIZE = 1 << 13
"""Longest rows of weights: the kernel's loop over them is unrolled."""
_REPEATS = 20


class SkinnyLinear(torch.nn.Module):
    """x × weightᵀ + bias, or activation(gate) × up of the two halves of that."""

    def __init__(
        self,
        weight: torch.nn.Parameter,
        bias: torch.nn.Parameter | None,
        *,
        activation: str = "none",
    ) -> None:
        """Take over parameters, and choose how to compute.

        Args:
            weight: [size, in] or, with an activation, [2 × size, in], the gate above up.
            bias: of as many elements as the weight has rows, or None.
            activation: none, silu, gelu_tanh or gelu.
        """
        super().__init__()
        self.weight, self.bias = weight, bias
        self._activation = activation
        self._skinny_rows = _rows_worth_it(
            (*weight.shape,), weight.dtype, weight.device, bias is not None, activation
        )

    def forward(self, source: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """[..., in] → [..., size], plus a residual of the same shape and type if there is one."""
        rows = source.numel() // source.shape[-1]
        if 0 < rows <= self._skinny_rows and source.dtype == self.weight.dtype:
            return skinny_linear(source, self.weight, self.bias, self._activation, residual)
        product = _library_linear(source, self.weight, self.bias, self._activation)
        return product if residual is None else residual + product


def skinny_linear(
    source: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    activation: str,
    residual: torch.Tensor | None = None,
) -> torch.Tensor:
    """The layer for at most `MAX_ROWS` rows, in one kernel."""
    size, k = weight.shape
    if activation != "none":
        size //= 2
    flat = source.reshape(-1, k)
    flat = flat if flat.stride(1) == 1 else flat.contiguous()
    rows = flat.shape[0]
    tile = 4 if size <= 4096 else 8
    padded_rows = triton.next_power_of_2(rows)
    # At most 64 registers a thread for sums.
    tile_k = min(triton.next_power_of_2(k), max(128, 4096 // tile // padded_rows))
    output = source.new_empty(*source.shape[:-1], size)
    skinny_kernel[(triton.cdiv(size, tile),)](
        flat,
        weight,
        weight if bias is None else bias,
        weight if residual is None else residual.contiguous(),
        output,
        rows,
        flat.stride(0),
        size,
        K=k,
        ROWS=padded_rows,
        TILE=tile,
        TILE_K=tile_k,
        HAS_BIAS=bias is not None,
        HAS_RESIDUAL=residual is not None,
        ACTIVATION=activation,
    )
    return output


def _library_linear(
    source: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str
) -> torch.Tensor:
    product = functional.linear(source, weight, bias)
    return product if activation == "none" else gated(product, activation)


@cache
def _rows_worth_it(
    shape: tuple[int, int],
    dtype: torch.dtype,
    device: torch.device,
    has_bias: bool,
    activation: str,
) -> int:
    """The largest number of rows for which the kernel is right and faster; all without a GPU."""
    if shape[1] > _MAX_SIZE:
        return 0
    try:
        return _rows_measured(shape, dtype, device, has_bias=has_bias, activation=activation)
    except Exception as error:  # a compiler or a GPU that was not tried
        _log.warning("Linear layers of few rows are left to the library: %s", first_line(error))
        return 0


def _rows_measured(
    shape: tuple[int, int],
    dtype: torch.dtype,
    device: torch.device,
    *,
    has_bias: bool,
    activation: str,
) -> int:
    weight = torch.randn(shape, dtype=dtype, device=device) / shape[1] ** 0.5
    bias = torch.randn(shape[0], dtype=dtype, device=device) if has_bias else None
    for rows in (MAX_ROWS, 1):
        source = torch.randn(rows, shape[1], dtype=dtype, device=device)
        arguments: Any = (source, weight, bias, activation)
        if not agree(lambda: _library_linear(*arguments), lambda: skinny_linear(*arguments)):  # noqa: B023
            continue
        if device.type != "cuda" or _time(skinny_linear, arguments) < _time(
            _library_linear, arguments
        ):
            return rows
    return 0


def _time(compute: Any, arguments: Any) -> float:
    """Milliseconds of some repetitions in a CUDA graph, as decode steps run it."""
    compute(*arguments)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        for _ in range(_REPEATS):
            compute(*arguments)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    times: list[float] = []
    for _ in range(4):
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return min(times[1:])
