"""Reads `GenerationDefaults` from a model's files.

The files are untrusted and none of this is needed to run the model: a value of the wrong type or range
is ignored with a warning that names file and field, and so is a file that cannot be read.

`max_new_tokens` is not a default here: it would cut answers at a length chosen for demonstrations.
`do_sample` is ignored, as in vLLM.
"""

import logging
import math
from collections.abc import Mapping
from pathlib import Path

from engine.api.errors import ModelError
from engine.api.generation_defaults import GenerationDefaults
from engine.files.fields import Fields
from engine.files.json_file import read_optional_json

_log = logging.getLogger(__name__)

GENERATION_CONFIG = "generation_config.json"

_RANGES = {
    "temperature": (0.0, 100.0),
    "top_p": (1e-6, 1.0),
    "min_p": (0.0, 1.0),
    "repetition_penalty": (0.01, 10.0),
}
_MAX_TOP_K = 2**31 - 1

_GGUF_KEYS = {
    "temperature": "temp",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition_penalty": "penalty_repeat",
}
"""Field to the key under `general.sampling`, as llama.cpp's converter writes it."""


def read_generation_config(directory: Path) -> GenerationDefaults:
    """The defaults in the `generation_config.json` of a model directory; none without one."""
    try:
        config = read_optional_json(directory / GENERATION_CONFIG)
    except ModelError as error:
        _log.warning("%s The model has no generation defaults.", error)
        return GenerationDefaults()
    return _read(config, {name: name for name in _GGUF_KEYS}, GENERATION_CONFIG)


def read_gguf_defaults(metadata: Mapping[str, object], *, source: str) -> GenerationDefaults:
    """The defaults in the metadata of a GGUF file, `general.sampling.*`."""
    general = Fields(metadata, source=source).under("general.sampling")
    return _read(general, _GGUF_KEYS, "general.sampling of the GGUF file")


def read_onnx_defaults(directory: Path, search: Fields) -> GenerationDefaults:
    """The defaults of a model in ONNX: its `generation_config.json`, else `search` of its genai_config.json.

    onnxruntime-genai's model builder writes the library's own values into `search` of a model without
    defaults, and then `do_sample` false.
    """
    found = read_generation_config(directory)
    if found.source or not search.is_true("do_sample"):
        return found
    return _read(search, {name: name for name in _GGUF_KEYS}, "search of genai_config.json")


def _read(fields: Fields, keys: Mapping[str, str], source: str) -> GenerationDefaults:
    values = {name: _value(fields, key, name) for name, key in keys.items()}
    found = {name: value for name, value in values.items() if value is not None}
    return GenerationDefaults(**found, source=source) if found else GenerationDefaults()  # type: ignore[arg-type]


def _value(fields: Fields, key: str, name: str) -> float | int | None:
    """A valid value, or None."""
    if key not in fields:
        return None
    try:
        if name == "top_k":  # -1 is another spelling of "all"
            return max(0, fields.integer(key, low=-1, high=_MAX_TOP_K))
        low, high = _RANGES[name]
        value = fields.number(key, positive=False)
        if not low <= value <= high:
            raise fields.wrong(key, f"a number from {low:g} to {high:g}")
    except ModelError as error:
        _log.warning("%s The value is ignored.", error)
        return None
    return _shortest(value)


def _shortest(value: float) -> float:
    """A float32's shortest decimal: GGUF stores 0.7 as 0.699999988079071."""
    return float(f"{value:.7g}") if math.isfinite(value) else value
