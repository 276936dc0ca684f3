"""Qwen3.5 to 3.8 with experts: Qwen3.5's mixers, and a shared network with a weight of its own."""

from engine.models.families.checkpoint_header import CheckpointHeader, plus_one
from engine.models.families.expert_tensors import (
    ExpertNames,
    checkpoint_experts,
    expert_count,
    gguf_experts,
    used_experts,
)
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.model_header import MAX_WIDTH
from engine.models.families.qwen35 import checkpoint_mixers, gguf_mixers
from engine.models.families.role_names import TOP
from engine.models.spec import Experts, LayerSpec, Mlp, ModelSpec, Routing, TensorRef

_ROUTING = Routing("softmax", renormalise=True)


def _read_gguf(header: GgufHeader) -> ModelSpec:
    layers = []
    for index, (mixer, tensors) in enumerate(gguf_mixers(header)):
        experts, weights = gguf_experts(header, index, _ROUTING)
        layers.append(LayerSpec(mixer, experts, {**tensors, **weights}))
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("half"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    experts = shared_experts(header, _ROUTING)
    layers = [
        LayerSpec(mixer, experts, {**tensors, **checkpoint_ffn(header, index, experts)})
        for index, (mixer, tensors) in enumerate(checkpoint_mixers(header))
    ]
    return header.model(
        layers, plus_one(header.model_tensors(TOP)), ropes=(header.rope(share=0.25),)
    )


def shared_experts(header: CheckpointHeader, routing: Routing) -> Experts:
    """The experts of each layer of a checkpoint, and the network that every token uses besides."""
    config, activation = header.text, header.activation()
    count = expert_count(header, "num_experts", "num_local_experts")
    shared = config.integer("shared_expert_intermediate_size", low=1, high=MAX_WIDTH)
    return Experts(
        count,
        used_experts(header, count, default=8),
        config.integer("moe_intermediate_size", low=1, high=MAX_WIDTH),
        routing,
        activation,
        Mlp(shared, activation),
    )


def checkpoint_ffn(header: CheckpointHeader, index: int, experts: Experts) -> dict[str, TensorRef]:
    """The weights of a layer's experts, with those of the shared network and its weight."""
    weights = checkpoint_experts(header, index, experts, ExpertNames(), shared="shared_expert.")
    gate = f"{header.prefix}layers.{index}.mlp.shared_expert_gate.weight"
    weights["shared_router"] = TensorRef(header.require(gate))
    return weights


QWEN35_MOE = Family(
    "qwen35moe",
    ("qwen35moe",),
    _read_gguf,
    {
        "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
        "qwen3_5_moe": "Qwen3_5MoeForConditionalGeneration",
    },
    _read_checkpoint,
    reads_experts=True,
)
