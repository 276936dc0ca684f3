"""GLM 4.5 and later: sigmoid routing with a correction, a shared network, leading layers without experts."""

from engine.models.families.checkpoint_header import CheckpointHeader
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
from engine.models.families.role_names import (
    ATTENTION,
    MLP,
    NORMS_BEFORE,
    QK_NORMS,
    QKV_BIASES,
    TOP,
)
from engine.models.spec import Experts, FeedForward, LayerSpec, Mlp, ModelSpec, Routing, TensorRef

_SHARE = 0.5
"""Of each head that is rotated, unless the file says otherwise."""


def _read_gguf(header: GgufHeader) -> ModelSpec:
    fields = header.fields
    # Blocks after the last layer predict further tokens.
    extra = fields.integer("nextn_predict_layers", default=0, high=header.num_layers - 1)
    routing = Routing(
        "sigmoid",
        renormalise=fields.flag("expert_weights_norm", default=True),
        scale=fields.number("expert_weights_scale", default=1.0),
    )
    dense = fields.integer("leading_dense_block_count", default=0)
    names = ATTENTION | {"mixer_norm": NORMS_BEFORE["mixer_norm"]}
    attentions = header.attentions()
    stored = header.attention_layers(attentions, names, QKV_BIASES | QK_NORMS)
    layers = []
    for index in range(header.num_layers - extra):
        norm = TensorRef(header.require(f"blk.{index}.post_attention_norm.weight"))
        tensors = {**stored[index], "ffn_norm": norm}
        ffn: FeedForward = Mlp(header.intermediate_sizes[index])
        if index >= dense:
            ffn, weights = gguf_experts(header, index, routing)
            tensors |= weights
        else:
            tensors |= header.layer_tensors(index, MLP)
        layers.append(LayerSpec(attentions[index], ffn, tensors))
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("half"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    config, activation = header.text, header.activation()
    count = expert_count(header, "n_routed_experts", "num_local_experts", "num_experts")
    size = config.integer("moe_intermediate_size", low=1, high=MAX_WIDTH)
    groups = config.integer("n_group", default=1, low=1, high=count)
    experts = Experts(
        count,
        used_experts(header, count, default=8),
        size,
        Routing(
            "sigmoid",
            renormalise=config.flag("norm_topk_prob", default=True),
            scale=config.number("routed_scaling_factor", default=1.0),
            groups=groups,
            used_groups=config.integer("topk_group", default=1, low=1, high=groups),
        ),
        activation,
        Mlp(size * config.integer("n_shared_experts", default=1, low=1, high=64), activation),
    )
    names = ATTENTION | NORMS_BEFORE | header.names_if("attention_bias", QKV_BIASES)
    names |= header.names_if("use_qk_norm", QK_NORMS)
    dense = config.integer("first_k_dense_replace", default=1)
    layers = []
    for index, attention in enumerate(header.attentions()):
        tensors = dict(header.layer_tensors(index, names))
        ffn: FeedForward = Mlp(header.intermediate_sizes[index], activation)
        if index >= dense:
            ffn = experts
            tensors |= checkpoint_experts(
                header, index, experts, ExpertNames(), shared="shared_experts."
            )
            correction = f"{header.prefix}layers.{index}.mlp.gate.e_score_correction_bias"
            tensors["router_correction"] = TensorRef(header.require(correction))
        else:
            tensors |= header.layer_tensors(index, MLP)
        layers.append(LayerSpec(attention, ffn, tensors))
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope(share=_SHARE),))


GLM4_MOE = Family(
    "glm4moe",
    ("glm4moe",),
    _read_gguf,
    {"glm4_moe": "Glm4MoeForCausalLM"},
    _read_checkpoint,
    reads_experts=True,
)
