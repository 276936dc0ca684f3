"""Phi-3 and Phi-4: q, k and v in one matrix, gate and up in another; LongRoPE, partly rotated heads."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.model_header import gate_up, qkv_rows, split_rows
from engine.models.families.role_names import NORMS_BEFORE, PROJECTIONS, TOP
from engine.models.spec import ModelSpec, Tensors

_NAMES = NORMS_BEFORE | {role: PROJECTIONS[role] for role in ("o", "down")}


def _read_gguf(header: GgufHeader) -> ModelSpec:
    # The window of the checkpoint, which llama.cpp reads but does not apply.
    attentions = header.attentions(windows=(header.window(),) * header.num_layers)
    separate = "blk.0.ffn_gate.weight" in header.shapes
    names = NORMS_BEFORE | PROJECTIONS
    if not separate:
        names = {role: name for role, name in names.items() if role not in ("gate", "up")}
    weights: list[Tensors] = []
    for index, tensors in enumerate(header.attention_layers(attentions, names)):
        width = header.intermediate_sizes[index]
        fused = {} if separate else gate_up(header.require(f"blk.{index}.ffn_up.weight"), width)
        weights.append({**tensors, **fused})
    layers = header.mlp_layers(attentions, weights)
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("half"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    attentions = header.attentions(windows=(header.window(),) * header.num_layers)
    weights: list[Tensors] = []
    for index, attention in enumerate(attentions):
        prefix = f"{header.prefix}layers.{index}."
        width = header.intermediate_sizes[index]
        weights.append(
            {
                **header.layer_tensors(index, _NAMES),
                **split_rows(
                    header.require(f"{prefix}self_attn.qkv_proj.weight"), qkv_rows(attention)
                ),
                **gate_up(header.require(f"{prefix}mlp.gate_up_proj.weight"), width),
            }
        )
    layers = header.mlp_layers(attentions, weights, activation=header.activation())
    return header.model(
        layers, header.model_tensors(TOP), ropes=(header.rope(longrope=("su", "yarn")),)
    )


PHI3 = Family("phi3", ("phi3",), _read_gguf, {"phi3": "Phi3ForCausalLM"}, _read_checkpoint)
