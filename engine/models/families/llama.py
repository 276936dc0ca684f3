"""Llama and Mistral: the layer that most families vary."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.mixtral import read_mixtral
from engine.models.families.role_names import ATTENTION_BIASES, LLAMA, MLP_BIASES, TOP
from engine.models.spec import ModelSpec


def _read_gguf(header: GgufHeader) -> ModelSpec:
    if header.fields.integer("expert_count", default=0) > 0:
        return read_mixtral(header)
    # Files of Mistral name llama, too; theirs have a window in every layer.
    attentions = header.attentions(windows=(header.window(),) * header.num_layers)
    layers = header.mlp_layers(
        attentions, header.attention_layers(attentions, LLAMA, ATTENTION_BIASES | MLP_BIASES)
    )
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("interleaved"),))


def _read_llama(header: CheckpointHeader) -> ModelSpec:
    names = LLAMA | header.names_if("attention_bias", ATTENTION_BIASES)
    names |= header.names_if("mlp_bias", MLP_BIASES)
    layers = header.mlp_layers(
        header.attentions(), header.all_layer_tensors(names), activation=header.activation()
    )
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope(),))


def _read_mistral(header: CheckpointHeader) -> ModelSpec:
    layers = header.mlp_layers(
        header.attentions(windows=(header.window(),) * header.num_layers),
        header.all_layer_tensors(LLAMA),
        activation=header.activation(),
    )
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope(),))


LLAMA_FAMILY = Family(
    "llama", ("llama",), _read_gguf, {"llama": "LlamaForCausalLM"}, _read_llama, reads_experts=True
)
MISTRAL = Family(
    "mistral", classes={"mistral": "MistralForCausalLM"}, read_checkpoint=_read_mistral
)
