"""GPT-2: learned positions, LayerNorm, a plain feed-forward, q, k and v in one matrix."""

from collections.abc import Sequence
from dataclasses import replace

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.model_header import qkv_rows, split_rows
from engine.models.spec import Attention, ModelSpec, TensorRef, Tensors

_NORMS = {
    "mixer_norm": "ln_1.weight",
    "mixer_norm.bias": "ln_1.bias",
    "ffn_norm": "ln_2.weight",
    "ffn_norm.bias": "ln_2.bias",
}
_QKV = dict.fromkeys("qkv", "attn.c_attn.weight")
_QKV_BIASES = {f"{role}.bias": "attn.c_attn.bias" for role in "qkv"}
_MATRICES = {"o": "attn.c_proj.weight", "up": "mlp.c_fc.weight", "down": "mlp.c_proj.weight"}
_BIASES = {"o.bias": "attn.c_proj.bias", "up.bias": "mlp.c_fc.bias", "down.bias": "mlp.c_proj.bias"}
_TOP = {
    "embedding": "wte.weight",
    "position_embedding": "wpe.weight",
    "final_norm": "ln_f.weight",
    "final_norm.bias": "ln_f.bias",
}
_KEYS = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "num_key_value_heads": "n_head",
    "max_position_embeddings": "n_positions",
    "intermediate_size": "n_inner",
    "layer_norm_eps": "layer_norm_epsilon",
}
_PREFIX = "transformer."
"""What the names of most checkpoints begin with; those of the first ones have no prefix."""


def _read_gguf(header: GgufHeader) -> ModelSpec:
    attentions = _attentions(header.attentions())
    tensors = header.attention_layers(attentions, _NORMS | _QKV | _QKV_BIASES | _MATRICES | _BIASES)
    layers = header.mlp_layers(attentions, tensors, activation="gelu_tanh")
    return header.model(layers, header.model_tensors(_TOP), ropes=(), layer_norm=True)


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    header = header.renamed(_KEYS)
    header.refuse("add_cross_attention")
    header = header.with_defaults(
        {"intermediate_size": 4 * header.hidden_size, "layer_norm_eps": 1e-5}
    )
    attentions = _attentions(
        header.attentions(
            scale=None if header.text.flag("scale_attn_weights", default=True) else 1.0
        )
    )
    if header.text.flag("scale_attn_by_inverse_layer_idx", default=False):
        attentions = [
            replace(attention, scale=attention.scale / (layer + 1))
            for layer, attention in enumerate(attentions)
        ]
    prefix = _PREFIX if f"{_PREFIX}wte.weight" in header.shapes else ""
    top = {role: TensorRef(header.require(prefix + name)) for role, name in _TOP.items()}
    top |= header.head(tied=True)
    layers = header.mlp_layers(
        attentions,
        [
            _layer(header, f"{prefix}h.{index}.", attention)
            for index, attention in enumerate(attentions)
        ],
        activation=header.activation("activation_function", "gelu_new"),
    )
    return header.model(layers, top, ropes=(), layer_norm=True)


def _attentions(rotated: Sequence[Attention]) -> list[Attention]:
    return [replace(attention, rope=None) for attention in rotated]


def _layer(header: CheckpointHeader, prefix: str, attention: Attention) -> Tensors:
    """The weights of a layer; its matrices are stored as [inputs, outputs]."""
    rows = qkv_rows(attention)
    biases = {f"{role}.bias": count for role, count in rows.items()}
    return {
        **{
            role: TensorRef(header.require(prefix + name))
            for role, name in (_NORMS | _BIASES).items()
        },
        **{
            role: TensorRef(header.require(prefix + name), transposed=True)
            for role, name in _MATRICES.items()
        },
        **split_rows(header.require(prefix + _QKV["q"]), rows, transposed=True),
        **split_rows(header.require(prefix + _QKV_BIASES["q.bias"]), biases),
    }


GPT2 = Family("gpt2", ("gpt2",), _read_gguf, {"gpt2": "GPT2LMHeadModel"}, _read_checkpoint)
