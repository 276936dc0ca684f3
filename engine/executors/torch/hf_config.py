"""Reads and checks the transformers configuration of a model directory.

No code from the directory is run (`trust_remote_code` is never set), and only local files are read.
"""

import inspect
from pathlib import Path
from typing import Any

from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    PreTrainedConfig,
)
from transformers.utils import logging as transformers_logging

from engine.api.error_text import first_line
from engine.api.errors import ModelError

_LOGGING: Any = transformers_logging
_EXPECTED = {"full_attention", "sliding_attention", "attention"}
LENGTH_DEPENDENT_ROPE = frozenset({"dynamic", "longrope"})
"""RoPE scalings whose frequencies depend on the longest sequence of the batch."""


def read_config(directory: Path) -> PreTrainedConfig:
    """Read the configuration of a model directory.

    Raises:
        ModelError: transformers cannot read it, or `check_config` rejects it.
    """
    # Progress bars and warnings would corrupt the screen of a full-screen application.
    _LOGGING.disable_progress_bar()
    _LOGGING.set_verbosity_error()
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            directory, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # transformers raises many kinds for a bad config.json
        raise ModelError(
            f"{directory / 'config.json'} cannot be used by transformers: {first_line(error)}."
        ) from error
    check_config(config, source=str(directory / "config.json"))
    return config


def check_config(config: PreTrainedConfig, *, source: str) -> None:
    """Reject models that the paged attention would silently compute wrongly.

    Raises:
        ModelError: the model is not a causal language model with an attention that can be replaced.
    """
    described = f"{source} describes a {config.model_type!r} model"
    model_class = image_class(config) if sees_images(config) else causal_class(config)
    if model_class is None:
        refusal = image_refusal(config)
        if refusal is not None:
            raise ModelError(f"{described}, which is not supported: {refusal}.")
        raise ModelError(f"{described}, which transformers does not run as a causal LM.")
    named = config.architectures or [model_class.__name__]
    if model_class.__name__ not in named:
        raise ModelError(
            f"{described} ({', '.join(named)[:80]}), but the causal LM class of transformers is "
            f"{model_class.__name__}: convert the checkpoint to it."
        )
    if not getattr(model_class, "_supports_attention_backend", False):
        raise ModelError(f"{described}, whose attention cannot be replaced by the paged one.")
    if getattr(model_class, "_is_stateful", False):
        raise ModelError(f"{described}, which has recurrent state: not supported.")
    text = config.get_text_config()
    unknown = set(getattr(text, "layer_types", None) or ()) - _EXPECTED
    if unknown:
        raise ModelError(f"{described} with {sorted(unknown)[0]!r} layers, which is not supported.")
    if getattr(text, "num_kv_shared_layers", 0):
        raise ModelError(f"{described}, whose layers share keys and values: not supported.")


def auto_class(config: PreTrainedConfig) -> Any:
    """The auto class that builds the model: for images and text, or for text only."""
    return AutoModelForImageTextToText if sees_images(config) else AutoModelForCausalLM


def causal_class(config: PreTrainedConfig) -> Any | None:
    """The class that AutoModelForCausalLM selects for a configuration, or None."""
    return _class_for(config, AutoModelForCausalLM)


def image_class(config: PreTrainedConfig) -> Any | None:
    """The class that AutoModelForImageTextToText selects for a configuration, or None."""
    return _class_for(config, AutoModelForImageTextToText)


def _class_for(config: PreTrainedConfig, auto: Any) -> Any | None:
    mapping = auto._model_mapping
    if type(config) not in mapping:
        return None
    found = mapping[type(config)]
    return found[0] if isinstance(found, (tuple, list)) else found


def sees_images(config: PreTrainedConfig) -> bool:
    """Whether the model is run as one that takes images.

    A model with images that the paged attention cannot compute is run on text alone, if transformers
    has it as a causal language model, too.
    """
    model_class = image_class(config)
    if model_class is None or image_refusal(config) is not None:
        return False
    return causal_class(config) is None or model_class.__name__ in (config.architectures or ())


def image_refusal(config: PreTrainedConfig) -> str | None:
    """Why the paged attention cannot compute the model's images; None if nothing speaks against it.

    It computes causal attention over positions that count tokens. What this does not find, the
    comparison at loading does (`engine.executors.torch.image_check`).
    """
    model_class = image_class(config)
    if model_class is None:
        return None
    text = config.get_text_config()
    if any("mrope_section" in rope for rope in rope_settings(text)):
        return "its tokens have positions in three dimensions (M-RoPE)"
    if text_key(config) is None:
        return "its configuration has no part for text"
    taken = inspect.signature(model_class.forward).parameters
    if "token_type_ids" in taken or getattr(text, "use_bidirectional_attention", None):
        return "its attention within an image is bidirectional"
    if "mm_token_type_ids" in taken:
        return "its attention or its positions within an image are not those of text"
    return None


def text_key(config: PreTrainedConfig) -> str | None:
    """The name of the part of a configuration that describes the language model; None without one."""
    text = config.get_text_config()
    name: str
    for name in config.sub_configs:
        if getattr(config, name, None) is text:
            return name
    return None


def attention_setting(config: PreTrainedConfig, implementation: str) -> str | dict[str, str]:
    """The `attn_implementation` under which the language model alone uses an implementation.

    A vision tower keeps transformers' own attention.
    """
    key = text_key(config)
    return implementation if key is None or not sees_images(config) else {key: implementation}


def context_length(config: PreTrainedConfig) -> int:
    """The maximum sequence length of the model.

    With RoPE scalings that depend on the longest sequence of the batch (`dynamic`, `longrope`), a
    row's frequencies would depend on the other rows; such models are limited to the length up to
    which the frequencies are constant.

    Raises:
        ModelError: the configuration has no context length.
    """
    text = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
        length = getattr(text, name, None)
        if isinstance(length, int) and length > 0:
            break
    else:
        raise ModelError(f"The {config.model_type!r} configuration has no context length.")
    for rope in rope_settings(text):
        if rope.get("rope_type") in LENGTH_DEPENDENT_ROPE:
            original = rope.get("original_max_position_embeddings")
            original = original or getattr(text, "original_max_position_embeddings", None)
            length = min(length, int(original or length))
    return length


def rope_settings(config: PreTrainedConfig) -> list[dict[str, Any]]:
    """The RoPE settings: one mapping, or one per layer type."""
    settings = getattr(config, "rope_parameters", None) or {}
    nested = [value for value in settings.values() if isinstance(value, dict)]
    return nested or [settings]
