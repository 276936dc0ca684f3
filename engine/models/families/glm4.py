"""GLM-4 (0414), dense: norms of inputs and outputs, half of each head rotated in neighbouring pairs."""

from dataclasses import replace

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.model_header import gate_up
from engine.models.families.role_names import PROJECTIONS, QKV_BIASES, TOP
from engine.models.spec import ModelSpec

_NAMES = {role: PROJECTIONS[role] for role in ("q", "k", "v", "o", "down")} | {
    "mixer_norm": "input_layernorm.weight",
    "mixer_post_norm": "post_self_attn_layernorm.weight",
    "ffn_norm": "post_attention_layernorm.weight",
    "ffn_post_norm": "post_mlp_layernorm.weight",
}


def _read_gguf(header: GgufHeader) -> ModelSpec:
    attentions = header.attentions()
    weights = [
        {**tensors, **gate_up(header.require(f"blk.{index}.ffn_up.weight"), width)}
        for index, (tensors, width) in enumerate(
            zip(
                header.attention_layers(attentions, _NAMES, QKV_BIASES),
                header.intermediate_sizes,
                strict=True,
            )
        )
    ]
    layers = header.mlp_layers(attentions, weights)
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("interleaved"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    names = _NAMES | header.names_if("attention_bias", QKV_BIASES, default=True)
    weights = []
    for index, width in enumerate(header.intermediate_sizes):
        name = f"{header.prefix}layers.{index}.mlp.gate_up_proj.weight"
        tensors = header.layer_tensors(index, names)
        weights.append({**tensors, **gate_up(header.require(name), width)})
    layers = header.mlp_layers(header.attentions(), weights, activation=header.activation())
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(replace(header.rope(share=0.5), style="interleaved"),),
    )


GLM4 = Family("glm4", ("glm4",), _read_gguf, {"glm4": "Glm4ForCausalLM"}, _read_checkpoint)
