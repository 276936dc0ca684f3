"""Reading small files of a project, which may be missing, huge or broken."""

import json
import tomllib
from pathlib import Path
from typing import Any

MAX_BYTES = 1 << 20


def text_of(path: Path) -> str:
    """The first `MAX_BYTES` bytes as text; empty if there is no regular file that can be read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""


def toml_of(path: Path) -> dict[str, Any]:
    """The members of a TOML file; none if it is broken."""
    try:
        return tomllib.loads(text_of(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def json_of(path: Path) -> dict[str, Any]:
    """The members of a JSON file; none if it is broken or no object."""
    try:
        found = json.loads(text_of(path) or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
