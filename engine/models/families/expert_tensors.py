"""What the readers of families with experts share: counts, and where the experts' weights are stored."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.model_header import MAX_WIDTH
from engine.models.spec import (
    Activation,
    Attention,
    Experts,
    LayerSpec,
    Mlp,
    Routing,
    TensorRef,
    Tensors,
)

MAX_EXPERTS = 1 << 16
_MAX_USED = 64
"""Most experts that a token uses in the native executor."""

_GGUF_ROUTING = {
    "router": "ffn_gate_inp.weight",
    "router.bias": "ffn_gate_inp.bias",
    "router_correction": "exp_probs_b.bias",
    "shared_router": "ffn_gate_inp_shexp.weight",
}
_PROJECTIONS = ("gate", "up", "down")
_UNGATED = ("up", "down")


@dataclass(frozen=True, slots=True)
class ExpertNames:
    """Names of a checkpoint's experts, without that of the layer.

    Attributes:
        block: what comes before the names of the block.
        router: its logits' matrix.
        gate, up, down: of one expert, in files that store each expert by itself.
        fused: gate and up of all experts, in files that store them together, as
            [count, 2 * intermediate, hidden].
        stacked_down: the down projections of all experts, in such files.
    """

    block: str = "mlp."
    router: str = "gate.weight"
    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"
    fused: str = "experts.gate_up_proj"
    stacked_down: str = "experts.down_proj"


def stored_names(header: CheckpointHeader, published: ExpertNames, own: ExpertNames) -> ExpertNames:
    """The names that a checkpoint has: those of published ones, or those of transformers' own parameters."""
    router = f"{header.prefix}layers.0.{published.block}{published.router}"
    return published if router in header.shapes else own


def gguf_experts(
    header: GgufHeader,
    index: int,
    routing: Routing,
    *,
    activation: Activation = "silu",
    intermediate_size: int | None = None,
    gated: bool = True,
) -> tuple[Experts, dict[str, TensorRef]]:
    """The experts of a layer of a GGUF file, and their weights.

    Args:
        header: the file.
        index: the layer.
        routing: how experts are chosen.
        activation: of each expert and of the shared network.
        intermediate_size: of each expert if the file does not say; None if it has to.
        gated: whether the experts and the shared network have a gate.

    Raises:
        ModelError: a count or a weight is missing or damaged.
    """
    fields, prefix = header.fields, f"blk.{index}."
    count = fields.integer("expert_count", low=1, high=MAX_EXPERTS)
    used = fields.integer("expert_used_count", low=1, high=min(count, _MAX_USED))
    size = fields.integer(
        "expert_feed_forward_length", default=intermediate_size, low=1, high=MAX_WIDTH
    )
    shapes = header.shapes
    tensors = {
        role: TensorRef(prefix + name)
        for role, name in _GGUF_ROUTING.items()
        if role == "router" or prefix + name in shapes
    }
    header.require(tensors["router"].name)
    fused = f"{prefix}ffn_gate_up_exps.weight"
    if fused in shapes:
        tensors |= _fused(fused, size)
    projections = _PROJECTIONS if gated else _UNGATED
    for part in projections:
        name = f"{prefix}ffn_{part}_exps"
        if f"experts.{part}" not in tensors:
            tensors[f"experts.{part}"] = TensorRef(header.require(f"{name}.weight"))
        if f"{name}.bias" in shapes:
            tensors[f"experts.{part}.bias"] = TensorRef(f"{name}.bias")
    shared = None
    if f"{prefix}ffn_up_shexp.weight" in shapes:
        for part in projections:
            name = header.require(f"{prefix}ffn_{part}_shexp.weight")
            tensors[f"shared.{part}"] = TensorRef(name)
        shared = Mlp(header.width_of(tensors["shared.up"].name), activation)
    return Experts(count, used, size, routing, activation, shared), tensors


def gguf_expert_layers(
    header: GgufHeader,
    attentions: Sequence[Attention],
    weights: Sequence[Tensors],
    routing: Routing,
) -> list[LayerSpec]:
    """Layers with experts of a GGUF file, which may give their size as that of the feed-forward.

    Args:
        header: the file.
        attentions: of each layer.
        weights: of each layer, those of the experts not among them.
        routing: of all layers.
    """
    layers = []
    for index, (attention, tensors) in enumerate(zip(attentions, weights, strict=True)):
        size = header.intermediate_sizes[index]
        experts, own = gguf_experts(header, index, routing, intermediate_size=size)
        layers.append(LayerSpec(attention, experts, {**tensors, **own}))
    return layers


def checkpoint_experts(
    header: CheckpointHeader,
    index: int,
    experts: Experts,
    names: ExpertNames,
    *,
    shared: str | None = None,
) -> dict[str, TensorRef]:
    """Where the experts of a layer of a checkpoint are stored: each by itself, or all together.

    Args:
        header: the checkpoint.
        index: the layer.
        experts: their counts and sizes.
        names: see `ExpertNames`.
        shared: what comes before the names of the shared network's projections; None if there is none.

    Raises:
        ModelError: the file has no tensor for one of the weights.
    """
    prefix = f"{header.prefix}layers.{index}.{names.block}"
    tensors = {"router": TensorRef(header.require(prefix + names.router))}
    if prefix + names.fused in header.shapes:
        tensors |= _fused(prefix + names.fused, experts.intermediate_size)
        tensors["experts.down"] = TensorRef(header.require(prefix + names.stacked_down))
    else:
        for part, name in (("gate", names.gate), ("up", names.up), ("down", names.down)):
            pattern = f"{prefix}experts.{{}}.{name}.weight"
            tensors[f"experts.{part}"] = of_each_expert(header, pattern, experts.count)
    if shared is not None:
        tensors |= {
            f"shared.{part}": TensorRef(header.require(f"{prefix}{shared}{part}_proj.weight"))
            for part in _PROJECTIONS
        }
    return tensors


def of_each_expert(header: CheckpointHeader, pattern: str, count: int) -> TensorRef:
    """A weight of experts that are each stored by itself; `pattern` has `{}` for an expert's index."""
    for expert in range(count):
        header.require(pattern.format(expert))
    return TensorRef(pattern, parts=count)


def sparse_layers(header: CheckpointHeader) -> tuple[bool, ...]:
    """Which layers of a checkpoint of Qwen have experts; the others have a feed-forward."""
    config = header.text
    step = config.integer("decoder_sparse_step", default=1, low=1)
    dense = config.integers("mlp_only_layers") if "mlp_only_layers" in config else []
    return tuple(
        index not in dense and (index + 1) % step == 0 for index in range(header.num_layers)
    )


def used_experts(header: CheckpointHeader, count: int, default: int | None = None) -> int:
    """Experts that a token of a checkpoint's model uses, of `count`."""
    most = min(count, _MAX_USED)
    return header.text.integer("num_experts_per_tok", default=default, low=1, high=most)


def expert_count(header: CheckpointHeader, *keys: str) -> int:
    """Number of experts, which configs give under one of several names."""
    found = next((key for key in keys if key in header.text), keys[0])
    return header.text.integer(found, low=1, high=MAX_EXPERTS)


def _fused(name: str, size: int) -> dict[str, TensorRef]:
    """Gate and up of each expert in the rows of one tensor, gate first."""
    return {
        "experts.gate": TensorRef(name, 0, run=size, step=2 * size),
        "experts.up": TensorRef(name, size, run=size, step=2 * size),
    }
