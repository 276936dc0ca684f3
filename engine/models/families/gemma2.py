"""Gemma 2: every second layer with a window, soft-capped scores and logits."""

from engine.models.families.checkpoint_header import CheckpointHeader, plus_one
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.role_names import ATTENTION_BIASES, NORMS_AROUND, PROJECTIONS, TOP
from engine.models.families.windows import sliding_windows
from engine.models.spec import ModelSpec

_NAMES = PROJECTIONS | NORMS_AROUND
_PERIOD = 2
_LAYERS_OF_27B = 46
_DEFAULTS = {
    "head_dim": 256,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "sliding_window": 4096,
    "query_pre_attn_scalar": 256,
}


def _read_gguf(header: GgufHeader) -> ModelSpec:
    fields = header.fields
    scale = header.head_dim**-0.5
    if header.num_layers == _LAYERS_OF_27B:  # the only one whose scale is of another size
        scale = (header.hidden_size // header.num_heads[0]) ** -0.5
    window = header.window(default=4096)
    attentions = header.attentions(
        windows=sliding_windows(header, header.sliding_layers(_PERIOD), window),
        scale=scale,
        softcap=fields.number("attn_logit_softcapping", default=50.0),
    )
    layers = header.mlp_layers(
        attentions, header.attention_layers(attentions, _NAMES), activation="gelu_tanh"
    )
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(header.rope("half"),),
        embedding_multiplier=header.hidden_size**0.5,
        logit_softcap=fields.number("final_logit_softcapping", default=30.0),
    )


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    # Null means no cap; a key that is left out means the default.
    caps = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
    softcap, logit_softcap = (header.softcap(key, default) for key, default in caps.items())
    header = header.with_defaults(_DEFAULTS)
    header.refuse("use_bidirectional_attention")
    config = header.text
    names = _NAMES | header.names_if("attention_bias", ATTENTION_BIASES)
    layers = header.mlp_layers(
        header.attentions(
            windows=sliding_windows(header, header.sliding_layers(_PERIOD), header.window()),
            scale=config.number("query_pre_attn_scalar") ** -0.5,
            softcap=softcap,
        ),
        [plus_one(tensors) for tensors in header.all_layer_tensors(names)],
        activation=header.activation("hidden_activation", "gelu_pytorch_tanh"),
    )
    return header.model(
        layers,
        plus_one(header.model_tensors(TOP, tied=True)),
        ropes=(header.rope(),),
        embedding_multiplier=header.hidden_size**0.5,
        logit_softcap=logit_softcap,
    )


GEMMA2 = Family(
    "gemma2", ("gemma2",), _read_gguf, {"gemma2": "Gemma2ForCausalLM"}, _read_checkpoint
)
