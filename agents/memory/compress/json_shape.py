"""JSON to its shape: names, types and lengths, without values."""

import json
from typing import Any

MAX_DEPTH = 12
MAX_NAMES = 60


def json_shape(text: str) -> str | None:
    """The shape of a document, such as `{"users": [240 × {"id": int}]}`, or None if it is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _shape([value], 0)


def _shape(values: list[Any], depth: int) -> str:
    """The common shape of several values."""
    kinds: dict[str, list[Any]] = {}
    for value in values:
        kinds.setdefault(_kind(value), []).append(value)
    return " | ".join(_of_kind(kind, kinds[kind], depth) for kind in sorted(kinds))


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _of_kind(kind: str, values: list[Any], depth: int) -> str:
    if kind == "dict":
        return "{…}" if depth >= MAX_DEPTH else _object(values, depth)
    if kind == "list":
        lengths = sorted({len(value) for value in values})
        count = str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]}–{lengths[-1]}"
        items = [item for value in values for item in value]
        if not items:
            return "[]"
        return f"[{count} × {'…' if depth >= MAX_DEPTH else _shape(items, depth + 1)}]"
    return kind


def _object(values: list[dict[str, Any]], depth: int) -> str:
    names = list(dict.fromkeys(name for value in values for name in value))
    parts = []
    for name in names[:MAX_NAMES]:
        present = [value[name] for value in values if name in value]
        optional = "?" if len(present) < len(values) else ""
        parts.append(
            f"{json.dumps(name, ensure_ascii=False)}{optional}: {_shape(present, depth + 1)}"
        )
    if len(names) > MAX_NAMES:
        parts.append(f"… {len(names) - MAX_NAMES} more names")
    return "{" + ", ".join(parts) + "}"
