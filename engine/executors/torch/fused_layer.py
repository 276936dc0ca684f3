"""`fused_layer`: a decoder layer with its first residual sum in its second norm, and its second in the MLP.

For layers that compute h = x + attention(norm(x)) and h + mlp(norm(h)). That a layer does is found out by
running its own `forward` with stand-ins for attention and MLP.
"""

from collections.abc import Callable
from types import MethodType
from typing import Any

import torch

from engine.executors.torch.fused_mlp import FusedMlp
from engine.executors.torch.fused_norm import FusedRmsNorm, add_rms_norm
from engine.executors.torch.fusion_check import agree

_CHILDREN = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}


class _StandIn(torch.nn.Module):
    """Computes something simple, and keeps the keyword arguments of its last call."""

    def __init__(self, compute: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self._compute = compute
        self.given: dict[str, Any] = {}

    def forward(self, hidden_states: torch.Tensor, **given: Any) -> Any:
        self.given = given
        return self._compute(hidden_states)


def fused_layer(
    layer: torch.nn.Module, norm: FusedRmsNorm, dtype: torch.dtype
) -> MethodType | None:
    """A `forward` for a decoder layer; None if the layer computes something else.

    Args:
        layer: any module.
        norm: the fused form of its second norm.
        dtype: type of the model's activations.
    """
    children = {
        name
        for name, child in layer.named_children()
        if not isinstance(child, torch.nn.Dropout | torch.nn.Identity)
    }
    if children != _CHILDREN:
        return None
    forward = _forward(type(layer).forward, norm)
    own = (layer.self_attn, layer.mlp)
    attention = _StandIn(lambda source: (source.roll(1, -1) * 2, None))
    layer.self_attn, layer.mlp = attention, _StandIn(lambda source: source.flip(-1) * 3)
    try:
        same = _same(layer, forward, attention, norm.weight, dtype)
    finally:
        layer.self_attn, layer.mlp = own
    return MethodType(forward, layer) if same else None


def _forward(original: Callable[..., Any], norm: FusedRmsNorm) -> Callable[..., Any]:
    def forward(self: Any, hidden_states: torch.Tensor, *others: Any, **given: Any) -> Any:
        if others:
            return original(self, hidden_states, *others, **given)
        attended, _ = self.self_attn(hidden_states=self.input_layernorm(hidden_states), **given)
        hidden_states, normed = add_rms_norm(hidden_states, attended, norm)
        if isinstance(self.mlp, FusedMlp):
            return self.mlp(normed, hidden_states)
        return hidden_states + self.mlp(normed)

    return forward


def _same(
    layer: torch.nn.Module,
    forward: Callable[..., Any],
    attention: _StandIn,
    weight: torch.Tensor,
    dtype: torch.dtype,
) -> bool:
    """Whether both compute the same and call the attention with the same arguments."""
    source = torch.randn(1, 3, len(weight), dtype=dtype, device=weight.device)
    given = {
        "attention_mask": None,
        "position_ids": torch.zeros(1, 3, dtype=torch.long, device=weight.device),
        "position_embeddings": (source, source),
        "use_cache": False,
        "paged_step": attention,
    }
    calls: list[dict[str, Any]] = []

    def run(compute: Callable[..., Any]) -> torch.Tensor:
        result = compute(layer, source, **given)
        calls.append(attention.given)
        if not isinstance(result, torch.Tensor):
            raise TypeError("the layer returns more than its hidden states")
        return result

    if not agree(lambda: run(type(layer).forward), lambda: run(forward)):
        return False
    theirs, ours = calls
    return all(theirs.get(name) is ours.get(name) for name in theirs.keys() | ours.keys())
