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
from engine.models.families.model_header import MAX_WIDTH, split_rows
from engine.models.families.role_names import ATTENTION, ATTENTION_BIASES, NORMS_BEFORE, TOP
from engine.models.spec import Experts, LayerSpec, Mlp, ModelSpec, Routing, TensorRef

_NAMES = ATTENTION | NORMS_BEFORE
_ROUTING = Routing("softmax_of_used")
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
    layers = gguf_expert_layers(header, attentions, weights, _ROUTING)
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(header.rope("interleaved"),),
        **gguf_multipliers(header),
    )


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    config, activation = header.text, header.activation()
    count = expert_count(header, "num_local_experts", "num_experts")
    shared = config.integer("shared_intermediate_size", default=0, high=MAX_WIDTH)
    experts = Experts(
        count,
        used_experts(header, count, default=2),
        header.intermediate_sizes[0],
        _ROUTING,
        activation,
        Mlp(shared, activation) if shared else None,
    )
    names = stored_names(header, _PUBLISHED, _OWN)
    attention_names = _NAMES | header.names_if("attention_bias", ATTENTION_BIASES)
    attentions = header.attentions(scale=config.number("attention_multiplier", default=1.0))
    layers = []
    for index, attention in enumerate(attentions):
        tensors = {
            **header.layer_tensors(index, attention_names),
            **checkpoint_experts(header, index, experts, names),
        }
        if shared:
            prefix = f"{header.prefix}layers.{index}.shared_mlp."
            both = header.require(f"{prefix}input_linear.weight")
            tensors |= split_rows(both, {"shared.gate": shared, "shared.up": shared})
            down = header.require(f"{prefix}output_linear.weight")
            tensors["shared.down"] = TensorRef(down)
        layers.append(LayerSpec(attention, experts, tensors))
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(header.rope(),),
        **checkpoint_multipliers(header),
    )


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
