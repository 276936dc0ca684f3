"""OLMoE: 8 of 64 experts, whose weights are not renormalised; norms of whole queries and keys."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.expert_tensors import (
    ExpertNames,
    checkpoint_experts,
    expert_count,
    gguf_expert_layers,
    used_experts,
)
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.role_names import (
    ATTENTION,
    ATTENTION_BIASES,
    NORMS_BEFORE,
    QK_NORMS,
    TOP,
)
from engine.models.spec import Experts, LayerSpec, ModelSpec, Routing

_NAMES = ATTENTION | NORMS_BEFORE | QK_NORMS


def _read_gguf(header: GgufHeader) -> ModelSpec:
    attentions = header.attentions(qk_norm_whole=True)
    weights = header.attention_layers(attentions, _NAMES)
    layers = gguf_expert_layers(header, attentions, weights, Routing("softmax"))
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("half"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    config = header.text
    if "clip_qkv" in config:
        raise header.unsupported("clip_qkv", "absent")
    count = expert_count(header, "num_experts", "num_local_experts")
    experts = Experts(
        count,
        used_experts(header, count, default=8),
        header.intermediate_sizes[0],
        Routing("softmax", renormalise=config.flag("norm_topk_prob", default=False)),
        header.activation(),
    )
    names = _NAMES | header.names_if("attention_bias", ATTENTION_BIASES)
    layers = [
        LayerSpec(
            attention,
            experts,
            {
                **header.layer_tensors(index, names),
                **checkpoint_experts(header, index, experts, ExpertNames()),
            },
        )
        for index, attention in enumerate(header.attentions(qk_norm_whole=True))
    ]
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope(),))


OLMOE = Family(
    "olmoe",
    ("olmoe",),
    _read_gguf,
    {"olmoe": "OlmoeForCausalLM"},
    _read_checkpoint,
    reads_experts=True,
)
