"""Mixtral: 2 of 8 experts in every layer of a Mistral."""

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
from engine.models.families.role_names import ATTENTION, ATTENTION_BIASES, NORMS_BEFORE, TOP
from engine.models.spec import Experts, LayerSpec, ModelSpec, Routing

_NAMES = ATTENTION | NORMS_BEFORE
_ROUTING = Routing("softmax", renormalise=True)
_PUBLISHED = ExpertNames("block_sparse_moe.", gate="w1", up="w3", down="w2")


def read_mixtral(header: GgufHeader) -> ModelSpec:
    """The description of a GGUF file of a llama with experts; its weights are renormalised."""
    attentions = header.attentions(windows=(header.window(),) * header.num_layers)
    weights = header.attention_layers(attentions, _NAMES, ATTENTION_BIASES)
    layers = gguf_expert_layers(header, attentions, weights, _ROUTING)
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("interleaved"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    count = expert_count(header, "num_local_experts", "num_experts")
    experts = Experts(
        count,
        used_experts(header, count, default=2),
        header.intermediate_sizes[0],
        _ROUTING,
        header.activation(),
    )
    names = stored_names(header, _PUBLISHED, ExpertNames())
    attentions = header.attentions(windows=(header.window(),) * header.num_layers)
    layers = [
        LayerSpec(
            attention,
            experts,
            {
                **header.layer_tensors(index, _NAMES),
                **checkpoint_experts(header, index, experts, names),
            },
        )
        for index, attention in enumerate(attentions)
    ]
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope(),))


MIXTRAL = Family(
    "mixtral", classes={"mixtral": "MixtralForCausalLM"}, read_checkpoint=_read_checkpoint
)
