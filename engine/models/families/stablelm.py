"""StableLM: LayerNorm, partly rotated heads."""

from engine.api.errors import ModelError
from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.role_names import LLAMA, QKV_BIASES, TOP
from engine.models.spec import ModelSpec

_NAMES = LLAMA | {
    "mixer_norm.bias": "input_layernorm.bias",
    "ffn_norm.bias": "post_attention_layernorm.bias",
}
_TOP = TOP | {"final_norm.bias": "norm.bias"}


def _read_gguf(header: GgufHeader) -> ModelSpec:
    # The metadata do not tell: converters write use_parallel_residual for models without it.
    if "blk.0.ffn_norm.weight" not in header.shapes or "blk.0.attn_q_norm.weight" in header.shapes:
        raise ModelError(
            f"{header.source} is a StableLM with parallel residuals or norms of each head, "
            "which are not supported."
        )
    attentions = header.attentions()
    layers = header.mlp_layers(attentions, header.attention_layers(attentions, _NAMES, QKV_BIASES))
    return header.model(
        layers, header.model_tensors(_TOP), ropes=(header.rope("half"),), layer_norm=True
    )


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    header.refuse("use_parallel_residual", "qk_layernorm")
    header = header.with_defaults({"layer_norm_eps": 1e-5})
    names = _NAMES | header.names_if("use_qkv_bias", QKV_BIASES)
    layers = header.mlp_layers(
        header.attentions(),
        header.all_layer_tensors(names),
        activation=header.activation(),
    )
    return header.model(
        layers, header.model_tensors(_TOP), ropes=(header.rope(share=0.25),), layer_norm=True
    )


STABLELM = Family(
    "stablelm", ("stablelm",), _read_gguf, {"stablelm": "StableLmForCausalLM"}, _read_checkpoint
)
