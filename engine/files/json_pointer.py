"""`at_pointer`: the value that a reference inside a JSON document leads to."""

from collections.abc import Mapping
from typing import Any


def at_pointer(root: Any, pointer: Any) -> Any:
    """The value at `#/a/b` in the root; None if there is none, or the reference leads elsewhere."""
    if not isinstance(pointer, str) or not pointer.startswith("#"):
        return None
    value = root
    for part in pointer[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value
