"""SmolLM3: every fourth layer has no rotary embedding."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.role_names import ATTENTION_BIASES, LLAMA, MLP_BIASES, TOP
from engine.models.families.windows import no_window, sliding_windows
from engine.models.spec import ModelSpec

_PERIOD = 4


def _read_gguf(header: GgufHeader) -> ModelSpec:
    no_window(header)
    attentions = header.attentions(ropes=_ropes(header.num_layers, _PERIOD))
    layers = header.mlp_layers(
        attentions, header.attention_layers(attentions, LLAMA, ATTENTION_BIASES | MLP_BIASES)
    )
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("interleaved"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    config, count = header.text, header.num_layers
    ropes = _ropes(
        count, config.integer("no_rope_layer_interval", default=_PERIOD, low=1, high=1 << 20)
    )
    if "no_rope_layers" in config:
        rotated = config.integers("no_rope_layers")
        if len(rotated) != count or not {0, 1}.issuperset(rotated):
            raise config.wrong("no_rope_layers", f"0 or 1 for each of {count} layers")
        ropes = tuple(0 if on else None for on in rotated)
    windows = (0,) * count
    if config.flag("use_sliding_window", default=False) and header.window():
        sliding = tuple(rope is None for rope in ropes)
        if "layer_types" in config:
            sliding = header.sliding_layers(_PERIOD)
        windows = sliding_windows(header, sliding, header.window())
    names = LLAMA | header.names_if("attention_bias", ATTENTION_BIASES)
    names |= header.names_if("mlp_bias", MLP_BIASES)
    layers = header.mlp_layers(
        header.attentions(windows=windows, ropes=ropes),
        header.all_layer_tensors(names),
        activation=header.activation(),
    )
    return header.model(layers, header.model_tensors(TOP, tied=True), ropes=(header.rope(),))


def _ropes(count: int, period: int) -> tuple[int | None, ...]:
    return tuple(0 if (layer + 1) % period else None for layer in range(count))


SMOLLM3 = Family(
    "smollm3", ("smollm3",), _read_gguf, {"smollm3": "SmolLM3ForCausalLM"}, _read_checkpoint
)
