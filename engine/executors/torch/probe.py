"""`probe`: determines the KV geometry of a model by running it on torch's *meta* device.

Tensors on the meta device have shapes but no storage. One token is run through the model, and the
number of KV heads and their sizes are recorded in every attention layer. This takes about a second
for any model size and needs no code per architecture.
"""

import copy

import torch
from transformers import PreTrainedConfig

from engine.api.error_text import first_line
from engine.api.errors import ModelError
from engine.executors.torch.attention import IMPLEMENTATION, AttentionTraits
from engine.executors.torch.hf_config import (
    LENGTH_DEPENDENT_ROPE,
    attention_setting,
    auto_class,
    rope_settings,
)
from engine.models.transformers_spec import KvLayer


class _Recorder:
    """A `PagedStep` that computes nothing and records the arguments of each layer."""

    def __init__(self) -> None:
        self.layers: dict[int, KvLayer] = {}
        self.windows: dict[int, int] = {}
        self.repeated: int | None = None

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        traits: AttentionTraits,
    ) -> torch.Tensor:
        if layer in self.layers:
            self.repeated = layer
        self.layers[layer] = KvLayer(key.shape[1], key.shape[2], value.shape[2])
        self.windows[layer] = traits.sliding_window
        return query.new_zeros(query.shape[0], query.shape[1], value.shape[2])


def probe(config: PreTrainedConfig) -> tuple[tuple[KvLayer, ...], int]:
    """The KV geometry of every layer, and the number of parameters.

    Raises:
        ModelError: the model cannot run with the paged attention; the message gives the reason.
    """
    config = _shapes_only(config)
    recorder = _Recorder()
    token = torch.zeros(1, 1, dtype=torch.long, device="meta")
    try:
        with torch.device("meta"), torch.no_grad():
            model = (
                auto_class(config)
                .from_config(
                    config,
                    attn_implementation=attention_setting(config, IMPLEMENTATION),
                    dtype=torch.float32,
                )
                .eval()
            )
            model(input_ids=token, position_ids=token, use_cache=False, paged_step=recorder)
    except Exception as error:  # any of transformers' model classes may raise anything here
        raise _refused(config, first_line(error)) from error
    _check_layers(config, recorder)
    layers = tuple(recorder.layers[index] for index in range(len(recorder.layers)))
    return layers, sum(parameter.numel() for parameter in model.parameters())


def _shapes_only(config: PreTrainedConfig) -> PreTrainedConfig:
    """A copy without features that need tensor values: quantisers, length-dependent RoPE."""
    config = copy.deepcopy(config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    for rope in rope_settings(config.get_text_config()):
        if rope.get("rope_type") in LENGTH_DEPENDENT_ROPE:
            rope["rope_type"] = "default"
    return config


def _check_layers(config: PreTrainedConfig, recorder: _Recorder) -> None:
    """Reject models in which the paged attention does not compute all attention."""
    text = config.get_text_config()
    expected = text.num_hidden_layers
    if recorder.repeated is not None:
        raise _refused(config, f"layer {recorder.repeated} calls attention twice")
    if sorted(recorder.layers) != list(range(expected)):
        raise _refused(
            config, f"only {len(recorder.layers)} of its {expected} layers call attention"
        )
    kinds = getattr(text, "layer_types", None)
    windows = recorder.windows
    if kinds:
        for layer, kind in enumerate(kinds):
            if (kind == "sliding_attention") != (windows[layer] > 0):
                raise _refused(config, f"layer {layer} is {kind}, but its window says otherwise")
    elif getattr(text, "sliding_window", None) and not any(windows.values()):
        raise _refused(config, "its sliding window is not passed to the attention")


def _refused(config: PreTrainedConfig, reason: str) -> ModelError:
    return ModelError(
        f"A {config.model_type!r} model cannot run with the paged attention: {reason}."
    )
