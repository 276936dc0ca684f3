"""Qwen3: norms of queries and keys."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.role_names import ATTENTION_BIASES, LLAMA, QK_NORMS, TOP
from engine.models.families.windows import no_window, qwen_windows
from engine.models.spec import ModelSpec


def _read_gguf(header: GgufHeader) -> ModelSpec:
    no_window(header)
    attentions = header.attentions()
    layers = header.mlp_layers(
        attentions, header.attention_layers(attentions, LLAMA | QK_NORMS, ATTENTION_BIASES)
    )
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("half"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    names = LLAMA | QK_NORMS | header.names_if("attention_bias", ATTENTION_BIASES)
    layers = header.mlp_layers(
        header.attentions(windows=qwen_windows(header)),
        header.all_layer_tensors(names),
        activation=header.activation(),
    )
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope(),))


QWEN3 = Family("qwen3", ("qwen3",), _read_gguf, {"qwen3": "Qwen3ForCausalLM"}, _read_checkpoint)
