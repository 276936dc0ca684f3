"""Mistral 3 and Ministral 3, their text part: YaRN, and queries that grow with their position."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.role_names import ATTENTION_BIASES, LLAMA, MLP_BIASES, TOP
from engine.models.families.windows import no_window
from engine.models.rope_config import rope_parameters
from engine.models.spec import ModelSpec, QueryTemperature

_TEXT_MODELS = ("mistral", "ministral3")


def _read_gguf(header: GgufHeader) -> ModelSpec:
    no_window(header)
    beta = header.fields.number("attention.temperature_scale", default=0.0, positive=False)
    temperature = None
    if beta != 0.0:
        original = header.fields.integer("rope.scaling.original_context_length", low=1)
        temperature = QueryTemperature(beta, original)
    attentions = header.attentions(temperature=temperature)
    layers = header.mlp_layers(
        attentions, header.attention_layers(attentions, LLAMA, ATTENTION_BIASES | MLP_BIASES)
    )
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("interleaved"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    if header.text.text("model_type", default=_TEXT_MODELS[0]) not in _TEXT_MODELS:
        raise header.unsupported("model_type", " or ".join(_TEXT_MODELS))
    rope = rope_parameters(header.text)
    beta = rope.number("llama_4_scaling_beta", default=0.0, positive=False)
    temperature = None
    if beta != 0.0:
        original = rope.integer("original_max_position_embeddings", low=1)
        temperature = QueryTemperature(beta, original)
    windows = (header.window(),) * header.num_layers
    layers = header.mlp_layers(
        header.attentions(windows=windows, temperature=temperature),
        header.all_layer_tensors(LLAMA),
        activation=header.activation(),
    )
    return header.model(layers, header.model_tensors(TOP, tied=True), ropes=(header.rope(),))


MISTRAL3 = Family(
    "mistral3",
    ("mistral3",),
    _read_gguf,
    {"ministral3": "Ministral3ForCausalLM", "mistral3": "Mistral3ForConditionalGeneration"},
    _read_checkpoint,
)
