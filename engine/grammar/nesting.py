"""`is_too_deep`: whether a JSON value nests deeper than a recursive parser could handle."""

from typing import Any

from engine.grammar.limits import MAX_JSON_DEPTH


def is_too_deep(value: dict[str, Any] | list[Any]) -> bool:
    """Whether an object or an array has others in it at more than `MAX_JSON_DEPTH` levels.

    Iterative, one pass per level.
    """
    layer: list[Any] = [value]
    for _ in range(MAX_JSON_DEPTH + 1):
        inner = [
            one for node in layer for one in (node.values() if isinstance(node, dict) else node)
        ]
        layer = [one for one in inner if isinstance(one, (dict, list))]
    return bool(layer)
