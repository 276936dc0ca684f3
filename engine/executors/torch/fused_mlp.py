"""`fused_mlp`: a gated MLP with one projection of gate and up, and one kernel for activation and product."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from engine.executors.torch.fusion_check import agree
from engine.executors.torch.merged_linear import Merged, merge_linears, mergeable
from engine.executors.torch.skinny_linear import SkinnyLinear

_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": functional.silu,
    "gelu_tanh": lambda source: functional.gelu(source, approximate="tanh"),
    "gelu": functional.gelu,
}


class FusedMlp(torch.nn.Module):
    """down(activation(gate(x)) × up(x))."""

    def __init__(self, gate_up: Merged, down: Any, activation: str) -> None:
        """Take over an MLP's weights."""
        super().__init__()
        self.gate_up_proj = SkinnyLinear(gate_up.weight, gate_up.bias, activation=activation)
        self.down_proj = SkinnyLinear(down.weight, down.bias)

    def forward(self, source: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """[..., hidden size] → the same shape, plus a residual if there is one."""
        hidden: torch.Tensor = self.down_proj(self.gate_up_proj(source), residual)
        return hidden


def fused_mlp(module: torch.nn.Module) -> FusedMlp | None:
    """The fused form of a gated MLP; None for any other module.

    Its gate and up projections may be merged already (Phi-3). It is compared with the module itself.
    """
    children = dict(module.named_children())
    activation = _activation(children.pop("act_fn", children.pop("activation_fn", None)))
    down = children.pop("down_proj", None)
    if activation is None or down is None or not mergeable([down]):
        return None
    if set(children) == {"gate_proj", "up_proj"}:
        pair = [children["gate_proj"], children["up_proj"]]
        if not mergeable(pair):
            return None
        gate_up = merge_linears(pair)  # type: ignore[arg-type]  # `mergeable` are linear layers
    elif set(children) == {"gate_up_proj"} and mergeable([children["gate_up_proj"]]):
        gate_up = merge_linears([children["gate_up_proj"]])  # type: ignore[list-item]
    else:
        return None
    fused = FusedMlp(gate_up, down, activation)
    weight = gate_up.weight
    source = torch.randn(1, 9, weight.shape[1], dtype=weight.dtype, device=weight.device)
    several = agree(lambda: module(source), lambda: fused(source))
    few = agree(lambda: module(source[:, :3]), lambda: fused(source[:, :3]))
    return fused if several and few else None


def _activation(module: object) -> str | None:
    """The name of an activation, found by what it computes: classes and names are many."""
    if not isinstance(module, torch.nn.Module) or any(True for _ in module.parameters()):
        return None
    source = torch.linspace(-8, 8, 257)
    for name, function in _ACTIVATIONS.items():
        if agree(lambda: module(source), lambda: function(source)):  # noqa: B023 (called at once)
            return name
    return None
