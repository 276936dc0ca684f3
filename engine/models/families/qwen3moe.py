"""Qwen3 with experts: 8 of 128 in most layers."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.expert_tensors import (
    ExpertNames,
    checkpoint_experts,
    expert_count,
    gguf_experts,
    sparse_layers,
    used_experts,
)
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.model_header import MAX_WIDTH
from engine.models.families.role_names import (
    ATTENTION,
    ATTENTION_BIASES,
    MLP,
    NORMS_BEFORE,
    QK_NORMS,
    TOP,
)
from engine.models.families.windows import no_window, qwen_windows
from engine.models.spec import Experts, FeedForward, LayerSpec, Mlp, ModelSpec, Routing

_NAMES = ATTENTION | NORMS_BEFORE | QK_NORMS


def _read_gguf(header: GgufHeader) -> ModelSpec:
    no_window(header)
    attentions = header.attentions()
    # Files do not say it; llama.cpp renormalises.
    routing = Routing("softmax", renormalise=True)
    layers = []
    for index, tensors in enumerate(header.attention_layers(attentions, _NAMES, ATTENTION_BIASES)):
        experts, weights = gguf_experts(header, index, routing)
        layers.append(LayerSpec(attentions[index], experts, {**tensors, **weights}))
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("half"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    config, activation = header.text, header.activation()
    count = expert_count(header, "num_experts", "num_local_experts")
    experts = Experts(
        count,
        used_experts(header, count, default=8),
        config.integer("moe_intermediate_size", low=1, high=MAX_WIDTH),
        Routing("softmax", renormalise=config.flag("norm_topk_prob", default=False)),
        activation,
    )
    sparse = sparse_layers(header)
    names = _NAMES | header.names_if("attention_bias", ATTENTION_BIASES)
    layers = []
    for index, attention in enumerate(header.attentions(windows=qwen_windows(header))):
        ffn: FeedForward = experts
        tensors = dict(header.layer_tensors(index, names))
        if not sparse[index]:
            ffn = Mlp(header.intermediate_sizes[index], activation)
            tensors |= header.layer_tensors(index, MLP)
        else:
            tensors |= checkpoint_experts(header, index, experts, ExpertNames())
        layers.append(LayerSpec(attention, ffn, tensors))
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope(),))


QWEN3_MOE = Family(
    "qwen3moe",
    ("qwen3moe",),
    _read_gguf,
    {"qwen3_moe": "Qwen3MoeForCausalLM"},
    _read_checkpoint,
    reads_experts=True,
)
