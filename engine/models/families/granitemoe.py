"""Granite 3 with experts: Granite's multipliers, softmax over the chosen, sometimes a shared network."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.expert_tensors import (
    ExpertNames,
    checkpoint_experts,
    expert_count,
    gguf_expert_layers,
    stored_names,
    used_experts,
)
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.granite_multipliers import checkpoint_multipliers, gguf_multipliers
from engine.models.families.model_header import MAX_WIDTH, gate_up
from engine.models.families.role_names import ATTENTION, ATTENTION_BIASES, NORMS_BEFORE, TOP
from engine.models.spec import Experts, LayerSpec, Mlp, ModelSpec, Routing, TensorRef

_NAMES = ATTENTION | NORMS_BEFORE
GRANITE_ROUTING = Routing("softmax_of_used")
_BLOCK = "block_sparse_moe."
_PUBLISHED = ExpertNames(
    _BLOCK, "router.layer.weight", fused="input_linear.weight", stacked_down="output_linear.weight"
)
_OWN = ExpertNames(_BLOCK, "router.weight")


def _read_gguf(header: GgufHeader) -> ModelSpec:
    fields = header.fields
    attentions = header.attentions(
        scale=fields.number("attention.scale", default=header.head_dim**-0.5)
    )
    weights = header.attention_layers(attentions, _NAMES, ATTENTION_BIASES)
    layers = gguf_expert_layers(header, attentions, weights, GRANITE_ROUTING)
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(header.rope("interleaved"),),
        **gguf_multipliers(header),
    )


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    config = header.text
    shared = config.integer("shared_intermediate_size", default=0, high=MAX_WIDTH)
    experts = granite_experts(header, shared)
    attention_names = _NAMES | header.names_if("attention_bias", ATTENTION_BIASES)
    attentions = header.attentions(scale=config.number("attention_multiplier", default=1.0))
    layers = []
    for index, attention in enumerate(attentions):
        weights = granite_expert_tensors(header, index, experts)
        tensors = {**header.layer_tensors(index, attention_names), **weights}
        layers.append(LayerSpec(attention, experts, tensors))
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(header.rope(),),
        **checkpoint_multipliers(header),
    )


def granite_experts(header: CheckpointHeader, shared: int) -> Experts:
    """The experts of each layer of a checkpoint, and a network of width `shared` besides; 0 for none."""
    activation = header.activation()
    count = expert_count(header, "num_local_experts", "num_experts")
    return Experts(
        count,
        used_experts(header, count, default=2),
        header.intermediate_sizes[0],
        GRANITE_ROUTING,
        activation,
        Mlp(shared, activation) if shared else None,
    )


def granite_expert_tensors(
    header: CheckpointHeader, index: int, experts: Experts
) -> dict[str, TensorRef]:
    """The weights of a layer's experts and of its shared network."""
    names = stored_names(header, _PUBLISHED, _OWN)
    tensors = checkpoint_experts(header, index, experts, names)
    if experts.shared is None:
        return tensors
    shared = shared_mlp(header, index, experts.shared.intermediate_size)
    return tensors | {f"shared.{role}": place for role, place in shared.items()}


def shared_mlp(header: CheckpointHeader, index: int, width: int) -> dict[str, TensorRef]:
    """A network that every token uses, whose gate is stored before the other half of its inputs."""
    prefix = f"{header.prefix}layers.{index}.shared_mlp."
    both = header.require(f"{prefix}input_linear.weight")
    down = header.require(f"{prefix}output_linear.weight")
    return {**gate_up(both, width), "down": TensorRef(down)}


GRANITE_MOE = Family(
    "granitemoe",
    ("granitemoe",),
    _read_gguf,
    {
        "granitemoe": "GraniteMoeForCausalLM",
        "granitemoeshared": "GraniteMoeSharedForCausalLM",
    },
    _read_checkpoint,
    reads_experts=True,
)
