"""Gemma 3: five layers with a window and a rotary base of their own to each one without."""

from engine.models.families.checkpoint_header import CheckpointHeader, plus_one
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.role_names import (
    ATTENTION_BIASES,
    NORMS_AROUND,
    PROJECTIONS,
    QK_NORMS,
    TOP,
)
from engine.models.families.windows import sliding_windows
from engine.models.spec import ModelSpec

_NAMES = PROJECTIONS | NORMS_AROUND | QK_NORMS
_PERIOD = 6
_LAYERS_OF_27B = 62
_DEFAULTS = {
    "vocab_size": 262_208,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-6,
    "sliding_window": 4096,
    "query_pre_attn_scalar": 256,
}
"""Values that published config.json files leave out."""


def _read_gguf(header: GgufHeader) -> ModelSpec:
    sliding = header.sliding_layers(_PERIOD)
    if header.window() == 0:
        sliding = (False,) * header.num_layers
    scale = header.head_dim**-0.5
    if header.num_layers == _LAYERS_OF_27B:  # the only one whose scale is of another size
        scale = (header.hidden_size // header.num_heads[0]) ** -0.5
    attentions = header.attentions(
        windows=sliding_windows(header, sliding, header.window()),
        ropes=tuple(map(int, sliding)),
        scale=scale,
    )
    layers = header.mlp_layers(
        attentions, header.attention_layers(attentions, _NAMES), activation="gelu_tanh"
    )
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(header.rope("half"), header.rope("half", local=True, theta=10_000.0)),
        embedding_multiplier=header.hidden_size**0.5,
        logit_softcap=header.fields.number("final_logit_softcapping", default=0.0, positive=False),
    )


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    header = header.with_defaults(_DEFAULTS)
    header.refuse("use_bidirectional_attention")
    if "attn_logit_softcapping" in header.text:  # a key of Gemma 2, which transformers ignores here
        raise header.unsupported("attn_logit_softcapping", "absent")
    names = _NAMES | header.names_if("attention_bias", ATTENTION_BIASES)
    sliding = header.sliding_layers(
        header.text.integer("sliding_window_pattern", default=_PERIOD, low=1)
    )
    local = header.text.number("rope_local_base_freq", default=10_000.0)
    attentions = header.attentions(
        windows=sliding_windows(header, sliding, header.window()),
        ropes=tuple(map(int, sliding)),
        scale=header.text.number("query_pre_attn_scalar") ** -0.5,
    )
    layers = header.mlp_layers(
        attentions,
        [plus_one(tensors) for tensors in header.all_layer_tensors(names)],
        activation=header.activation("hidden_activation", "gelu_pytorch_tanh"),
    )
    return header.model(
        layers,
        plus_one(header.model_tensors(TOP, tied=True)),
        ropes=(
            header.rope(kind="full_attention", theta=1_000_000.0),
            header.local_rope(theta=local),
        ),
        embedding_multiplier=header.hidden_size**0.5,
        logit_softcap=header.text.number("final_logit_softcapping", default=0.0, positive=False),
    )


GEMMA3 = Family(
    "gemma3",
    ("gemma3",),
    _read_gguf,
    {"gemma3_text": "Gemma3ForCausalLM", "gemma3": "Gemma3ForConditionalGeneration"},
    _read_checkpoint,
)
