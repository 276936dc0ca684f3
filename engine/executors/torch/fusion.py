"""`fuse`: replaces modules of a loaded model by ones with fewer kernels, so that it can be undone.

Modules are found by what they have and accepted by what they compute: each replacement is compared with
its original on random input when the model is loaded (`fusion_check`). What is not recognised stays.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from engine.executors.torch.fused_layer import fused_layer
from engine.executors.torch.fused_mlp import FusedMlp, fused_mlp
from engine.executors.torch.fused_norm import FusedRmsNorm, fused_norm
from engine.executors.torch.fused_rotary import fused_rotary
from engine.executors.torch.merged_linear import (
    ProjectionPart,
    SharedProjection,
    merge_linears,
    mergeable,
)
from engine.executors.torch.skinny_linear import SkinnyLinear

_PROJECTIONS = ("q_proj", "k_proj", "v_proj")


@dataclass(frozen=True, slots=True)
class _Replacement:
    """An attribute of a module: a child, or its `forward`, which its class defines if `original` is None."""

    owner: torch.nn.Module
    name: str
    original: torch.nn.Module | None
    fused: Any

    def apply(self) -> None:
        setattr(self.owner, self.name, self.fused)

    def undo(self) -> None:
        if self.original is None:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.original)


class Fusions:
    """The replacements of a model, applied or undone together."""

    def __init__(self, replacements: list[_Replacement]) -> None:
        """Apply them."""
        self._replacements = replacements
        self._apply()

    def __len__(self) -> int:
        return len(self._replacements)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """A context in which the model consists of transformers' own modules."""
        self.undo()
        try:
            yield
        finally:
            self._apply()

    def undo(self) -> None:
        """Put transformers' own modules back. They keep sharing the memory of merged weights."""
        for replacement in self._replacements:
            replacement.undo()

    def _apply(self) -> None:
        for replacement in self._replacements:
            replacement.apply()


def fuse(model: Any) -> Fusions:
    """Replace what can be replaced in a model's decoder, for a GPU or Triton's interpreter."""
    decoder: torch.nn.Module = model.get_decoder()
    replacements = []
    with torch.random.fork_rng([model.device] if model.device.type == "cuda" else []):
        torch.manual_seed(0)
        for owner in list(decoder.modules()):
            replacements += _projections(owner)
            replacements += _rotary(owner, model)
            children = _children(owner, model)
            replacements += children
            replacements += _layer(owner, children, model)
    return Fusions(replacements)


def _children(owner: torch.nn.Module, model: Any) -> list[_Replacement]:
    """Norms, MLPs and output projections."""
    replacements = []
    for name, child in owner.named_children():
        fused = (
            fused_norm(child, model.dtype) or fused_mlp(child) or _output_projection(name, child)
        )
        if fused is not None:
            replacements.append(_Replacement(owner, name, child, fused))
    return replacements


def _layer(layer: torch.nn.Module, children: list[_Replacement], model: Any) -> list[_Replacement]:
    """The `forward` of a decoder layer whose MLP and second norm are fused."""
    fused = {replacement.name: replacement.fused for replacement in children}
    norm = fused.get("post_attention_layernorm")
    if not isinstance(norm, FusedRmsNorm) or not isinstance(fused.get("mlp"), FusedMlp):
        return []
    forward = fused_layer(layer, norm, model.dtype)
    return [] if forward is None else [_Replacement(layer, "forward", None, forward)]


def _projections(attention: torch.nn.Module) -> list[_Replacement]:
    """One projection for queries, keys and values."""
    modules: list[Any] = [getattr(attention, name, None) for name in _PROJECTIONS]
    if not mergeable(modules):
        return []
    weight, bias, sizes = merge_linears(modules)
    project = SkinnyLinear(weight, bias)
    shared = SharedProjection(project, sizes)
    parts = [ProjectionPart(shared, 0, owned=project), *(ProjectionPart(shared, i) for i in (1, 2))]
    return [
        _Replacement(attention, name, module, part)
        for name, module, part in zip(_PROJECTIONS, modules, parts, strict=True)
    ]


def _output_projection(name: str, module: torch.nn.Module) -> SkinnyLinear | None:
    if name != "o_proj" or not mergeable([module]):
        return None
    return SkinnyLinear(module.weight, module.bias)  # type: ignore[arg-type]  # a linear layer


def _rotary(attention: torch.nn.Module, model: Any) -> list[_Replacement]:
    if "forward" in vars(attention):
        return []
    forward = fused_rotary(attention, model.dtype, model.device)
    return [] if forward is None else [_Replacement(attention, "forward", None, forward)]
