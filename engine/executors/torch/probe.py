"""The geometry of a model's KV cache, asked of the model itself.

A model of the configuration is built on torch's *meta* device, where tensors have shapes and no
storage, and one token is sent through it: every attention layer then tells its KV heads and sizes.
That takes about a second whatever the model's size, and needs no file per architecture.
"""

import copy
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from engine.api.error_text import first_line
from engine.api.errors import ModelError
from engine.executors.torch.attention import IMPLEMENTATION, AttentionTraits
from engine.executors.torch.hf_config import STRETCHING, rope_settings
from engine.models.transformers_spec import KvLayer

_MODELS: Any = AutoModelForCausalLM  # its annotations lag behind its behaviour


class _Recorder:
    """A `PagedStep` that computes nothing and remembers what it was asked."""

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
        ModelError: the model cannot run through the paged attention; says why.
    """
    config = _shapes_only(config)
    recorder = _Recorder()
    token = torch.zeros(1, 1, dtype=torch.long, device="meta")
    try:
        with torch.device("meta"), torch.no_grad():
            model = _MODELS.from_config(
                config, attn_implementation=IMPLEMENTATION, dtype=torch.float32
            ).eval()
            model(input_ids=token, position_ids=token, use_cache=False, paged_step=recorder)
    except Exception as error:  # any of transformers' model classes may raise anything here
        raise _refused(config, first_line(error)) from error
    _check_layers(config, recorder)
    layers = tuple(recorder.layers[index] for index in range(len(recorder.layers)))
    return layers, sum(parameter.numel() for parameter in model.parameters())


def _shapes_only(config: PreTrainedConfig) -> PreTrainedConfig:
    """A copy without what needs values rather than shapes: quantisers, frequencies that adapt."""
    config = copy.deepcopy(config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    for rope in rope_settings(config.get_text_config()):
        if rope.get("rope_type") in STRETCHING:
            rope["rope_type"] = "default"
    return config


def _check_layers(config: PreTrainedConfig, recorder: _Recorder) -> None:
    """Refuse models whose attention is only partly ours."""
    text = config.get_text_config()
    expected = text.num_hidden_layers
    if recorder.repeated is not None:
        raise _refused(config, f"layer {recorder.repeated} attends twice")
    if sorted(recorder.layers) != list(range(expected)):
        raise _refused(config, f"{len(recorder.layers)} of its {expected} layers attend")
    kinds = getattr(text, "layer_types", None)
    windows = recorder.windows
    if kinds:
        for layer, kind in enumerate(kinds):
            if (kind == "sliding_attention") != (windows[layer] > 0):
                raise _refused(config, f"layer {layer} is {kind} but does not say so")
    elif getattr(text, "sliding_window", None) and not any(windows.values()):
        raise _refused(config, "its sliding window does not reach the attention")


def _refused(config: PreTrainedConfig, reason: str) -> ModelError:
    return ModelError(
        f"A {config.model_type!r} model cannot run through the paged attention: {reason}."
    )
