"""Granite: multipliers of embeddings, residuals, attention scores and logits."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.granite_multipliers import checkpoint_multipliers, gguf_multipliers
from engine.models.families.role_names import ATTENTION_BIASES, LLAMA, MLP_BIASES, TOP
from engine.models.spec import ModelSpec


def _read_gguf(header: GgufHeader) -> ModelSpec:
    fields = header.fields
    # Granite's files switch the rotary embedding off by this key.
    rotated = fields.flag("rope.scaling.finetuned", default=True)
    attentions = header.attentions(
        ropes=(0 if rotated else None,) * header.num_layers,
        scale=fields.number("attention.scale", default=header.head_dim**-0.5),
    )
    layers = header.mlp_layers(
        attentions, header.attention_layers(attentions, LLAMA, ATTENTION_BIASES | MLP_BIASES)
    )
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(header.rope("interleaved"),),
        **gguf_multipliers(header),
    )


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    config = header.text
    names = LLAMA | header.names_if("attention_bias", ATTENTION_BIASES)
    names |= header.names_if("mlp_bias", MLP_BIASES)
    layers = header.mlp_layers(
        header.attentions(scale=config.number("attention_multiplier", default=1.0)),
        header.all_layer_tensors(names),
        activation=header.activation(),
    )
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(header.rope(),),
        **checkpoint_multipliers(header),
    )


GRANITE = Family(
    "granite", ("granite",), _read_gguf, {"granite": "GraniteForCausalLM"}, _read_checkpoint
)
