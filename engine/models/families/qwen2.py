"""Qwen2: biases of q, k and v."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.role_names import LLAMA, QKV_BIASES, TOP
from engine.models.families.windows import no_window, qwen_windows
from engine.models.spec import ModelSpec, TensorRef


def _read_gguf(header: GgufHeader) -> ModelSpec:
    no_window(header)
    attentions = header.attentions()
    tensors = dict(header.model_tensors(TOP))
    if "output.bias" in header.shapes:
        tensors["lm_head.bias"] = TensorRef("output.bias")
    layers = header.mlp_layers(attentions, header.attention_layers(attentions, LLAMA | QKV_BIASES))
    return header.model(layers, tensors, ropes=(header.rope("half"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    layers = header.mlp_layers(
        header.attentions(windows=qwen_windows(header)),
        header.all_layer_tensors(LLAMA | QKV_BIASES),
        activation=header.activation(),
    )
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope(),))


QWEN2 = Family("qwen2", ("qwen2",), _read_gguf, {"qwen2": "Qwen2ForCausalLM"}, _read_checkpoint)
