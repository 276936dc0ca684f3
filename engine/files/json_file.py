"""Reading the JSON files of a model directory, which are untrusted."""

import json
from pathlib import Path

import orjson

from engine.api.error_text import first_line
from engine.api.errors import ModelError
from engine.files.fields import Fields

_MAX_BYTES = 64 << 20


def read_json(path: Path) -> Fields:
    """The object in a JSON file.

    Raises:
        ModelError: the file is missing, larger than 64 MiB, or not a JSON object.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ModelError(f"{path} is larger than {_MAX_BYTES >> 20} MB.")
        value = _parse(path.read_bytes())
    except FileNotFoundError as error:
        raise ModelError(f"{path.parent} has no {path.name}.") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not valid JSON: {first_line(error)}.") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} does not contain a JSON object.")
    return Fields(value, source=str(path))


def _parse(data: bytes) -> object:
    """JSON, in which `Infinity` and `NaN` may be numbers, as Python's own writer writes them."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        if b"Infinity" not in data and b"NaN" not in data:
            raise
    return json.loads(data)


def read_optional_json(path: Path) -> Fields:
    """The object in a JSON file; empty if the file does not exist.

    Raises:
        ModelError: the file is larger than 64 MiB, or not a JSON object.
    """
    return read_json(path) if path.is_file() else Fields({}, source=str(path))
