"""A model directory's transformers configuration, and the class that will run it.

Nothing here runs code from the directory: `trust_remote_code` is never on, and only local files are
read.
"""

from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig
from transformers.utils import logging as transformers_logging

from engine.api.error_text import first_line
from engine.api.errors import ModelError

_LOGGING: Any = transformers_logging
_EXPECTED = {"full_attention", "sliding_attention", "attention"}
STRETCHING = frozenset({"dynamic", "longrope"})
"""Rotary scalings whose frequencies follow the longest sequence of a batch."""


def read_config(directory: Path) -> PreTrainedConfig:
    """The configuration of a model directory.

    Raises:
        ModelError: transformers does not know the architecture, or refuses its fields.
    """
    # Progress bars and warnings would be written across a full-screen application.
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
    """Refuse, by name, what the paged attention would compute wrongly without saying so.

    Raises:
        ModelError: no plain causal language model.
    """
    described = f"{source} describes a {config.model_type!r} model"
    model_class = causal_class(config)
    if model_class is None:
        raise ModelError(f"{described}, which transformers does not run as a causal LM.")
    named = config.architectures or [model_class.__name__]
    if model_class.__name__ not in named:
        raise ModelError(
            f"{described} ({', '.join(named)[:80]}), of which transformers' causal LM is "
            f"{model_class.__name__}: convert the checkpoint to that."
        )
    if not getattr(model_class, "_supports_attention_backend", False):
        raise ModelError(f"{described}, whose attention cannot be replaced by the paged one.")
    if getattr(model_class, "_is_stateful", False):
        raise ModelError(f"{described}, which keeps recurrent state beside the KV cache.")
    text = config.get_text_config()
    unknown = set(getattr(text, "layer_types", None) or ()) - _EXPECTED
    if unknown:
        raise ModelError(f"{described} with {sorted(unknown)[0]!r} layers, which is not supported.")
    if getattr(text, "num_kv_shared_layers", 0):
        raise ModelError(f"{described}, whose layers share keys and values: not supported.")


def causal_class(config: PreTrainedConfig) -> Any | None:
    """The class AutoModelForCausalLM makes for a configuration, or None."""
    mapping = AutoModelForCausalLM._model_mapping
    if type(config) not in mapping:
        return None
    found = mapping[type(config)]
    return found[0] if isinstance(found, (tuple, list)) else found


def context_length(config: PreTrainedConfig) -> int:
    """Tokens the model was made for.

    Rotary scalings that stretch with the longest sequence of a batch (`dynamic`, `longrope`) would
    make a row's frequencies depend on its neighbours; such models keep to the length below which
    the frequencies are fixed.

    Raises:
        ModelError: the configuration does not say.
    """
    text = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
        length = getattr(text, name, None)
        if isinstance(length, int) and length > 0:
            break
    else:
        raise ModelError(f"The {config.model_type!r} configuration names no context length.")
    for rope in rope_settings(text):
        if rope.get("rope_type") in STRETCHING:
            original = rope.get("original_max_position_embeddings")
            original = original or getattr(text, "original_max_position_embeddings", None)
            length = min(length, int(original or length))
    return length


def rope_settings(config: PreTrainedConfig) -> list[dict[str, Any]]:
    """The rotary settings: one mapping, or one for each kind of layer."""
    settings = getattr(config, "rope_parameters", None) or {}
    nested = [value for value in settings.values() if isinstance(value, dict)]
    return nested or [settings]
