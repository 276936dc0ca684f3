"""OLMo 2 and 3: norms of the outputs of attention and feed-forward, and of whole queries and keys."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.role_names import (
    ATTENTION_BIASES,
    NORMS_AFTER,
    PROJECTIONS,
    QK_NORMS,
    TOP,
)
from engine.models.families.windows import sliding_windows
from engine.models.spec import ModelSpec

_NAMES = PROJECTIONS | NORMS_AFTER | QK_NORMS
_PERIOD = 4


def _read_gguf(header: GgufHeader) -> ModelSpec:
    sliding = header.sliding_layers(_PERIOD)
    if header.window() == 0:
        sliding = (False,) * header.num_layers
    attentions = header.attentions(
        windows=sliding_windows(header, sliding, header.window()),
        ropes=tuple(map(int, sliding)),
        qk_norm_whole=True,
    )
    layers = header.mlp_layers(attentions, header.attention_layers(attentions, _NAMES))
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(header.rope("half"), header.rope("half", local=True)),
    )


def _read_olmo2(header: CheckpointHeader) -> ModelSpec:
    layers = header.mlp_layers(
        header.attentions(qk_norm_whole=True),
        header.all_layer_tensors(_names(header)),
        activation=header.activation(),
    )
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope(),))


def _read_olmo3(header: CheckpointHeader) -> ModelSpec:
    theta = header.text.number("rope_theta", default=500_000.0)
    sliding = header.sliding_layers(_PERIOD)
    window = header.window(default=4096)
    layers = header.mlp_layers(
        header.attentions(
            windows=sliding_windows(header, sliding, window),
            ropes=tuple(map(int, sliding)),
            qk_norm_whole=True,
        ),
        header.all_layer_tensors(_names(header)),
        activation=header.activation(),
    )
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(
            header.rope(kind="full_attention", theta=theta),
            header.local_rope(theta=theta),
        ),
    )


def _names(header: CheckpointHeader) -> dict[str, str]:
    return _NAMES | header.names_if("attention_bias", ATTENTION_BIASES)


OLMO2 = Family("olmo2", ("olmo2",), _read_gguf, {"olmo2": "Olmo2ForCausalLM"}, _read_olmo2)
OLMO3 = Family("olmo3", classes={"olmo3": "Olmo3ForCausalLM"}, read_checkpoint=_read_olmo3)
