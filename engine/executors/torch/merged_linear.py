"""`merge_linears`: several projections of the same input as one matrix multiplication."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch


class Merged(NamedTuple):
    """The weights of several projections, one below the other, and their biases or None."""

    weight: torch.nn.Parameter
    bias: torch.nn.Parameter | None
    sizes: tuple[int, ...]


def mergeable(modules: Sequence[object]) -> bool:
    """Whether all are plain linear layers of one input size, type and device, all with a bias or none."""
    first = modules[0]
    return all(
        type(module) is torch.nn.Linear
        and type(first) is torch.nn.Linear
        and not module._forward_hooks
        and not module._forward_pre_hooks
        and module.in_features == first.in_features
        and module.weight.dtype == first.weight.dtype
        and module.weight.device == first.weight.device
        and (module.bias is None) == (first.bias is None)
        for module in modules
    )


def merge_linears(modules: Sequence[torch.nn.Linear]) -> Merged:
    """Merge projections; their own parameters become parts of the merged one's memory."""
    bias = None
    if modules[0].bias is not None:
        bias = _joined([module.bias for module in modules])
    weight = _joined([module.weight for module in modules])
    start = 0
    for module in modules:
        rows = slice(start, start + module.out_features)
        module.weight = _frozen(weight[rows])
        if bias is not None:
            module.bias = _frozen(bias[rows])
        start = rows.stop
    return Merged(weight, bias, tuple(module.out_features for module in modules))


def _joined(parts: Sequence[torch.Tensor]) -> torch.nn.Parameter:
    return _frozen(torch.cat([part.detach() for part in parts]))


def _frozen(values: torch.Tensor) -> torch.nn.Parameter:
    return torch.nn.Parameter(values.detach(), requires_grad=False)


class SharedProjection:
    """Computes a merged projection once for an input, and hands out each part of it once."""

    def __init__(
        self, project: Callable[[torch.Tensor], torch.Tensor], sizes: tuple[int, ...]
    ) -> None:
        """Nothing is computed yet.

        Args:
            project: the merged projection.
            sizes: of its parts.
        """
        self._project = project
        self._sizes = list(sizes)
        self._input: torch.Tensor | None = None
        self._parts: dict[int, torch.Tensor] = {}

    def part(self, index: int, source: torch.Tensor) -> torch.Tensor:
        """Part `index` of the projection of `source`, [..., sizes[index]]: a view, not contiguous."""
        if self._input is not source or index not in self._parts:
            parts = torch.split(self._project(source), self._sizes, dim=-1)
            self._input, self._parts = source, dict(enumerate(parts))
        part = self._parts.pop(index)
        if not self._parts:
            self._input = None  # otherwise the activations would live until the next step
        return part


class ProjectionPart(torch.nn.Module):
    """Stands in for one of several merged projections."""

    def __init__(
        self, shared: SharedProjection, index: int, owned: torch.nn.Module | None = None
    ) -> None:
        """Part `index` of a shared projection; one of the parts owns the merged parameters."""
        super().__init__()
        self.owned = owned
        self._shared = shared
        self._index = index

    def forward(self, source: torch.Tensor) -> torch.Tensor:
        """The part of `source`'s projection."""
        return self._shared.part(self._index, source)
