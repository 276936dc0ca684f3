"""`closed_json`: the value of a JSON text that was cut at a token limit, completed by its schema.

What was written stays. A text that was cut ends at its last whole word, with an ellipsis; a member of a list
that was cut is left out; members that are missing get the least value that the schema allows.
"""

import json
from collections.abc import Mapping
from typing import Any

_MISSING = object()
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
CUT = "…"


def closed_json(text: str, schema: Mapping[str, Any]) -> Any:
    """The value that a text begins to spell, valid under a bounded schema.

    Args:
        text: the beginning of a JSON text, or all of it.
        schema: as `bounded_schema.bounded_schema` makes it.
    """
    value, _ = _Reader(text).value()
    return _completed(value, schema)


class _Reader:
    """Reads as much JSON as there is. Each method gives the value and whether it ended before the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def value(self) -> tuple[Any, bool]:
        """The next value."""
        match self._peek():
            case "{":
                return self._object()
            case "[":
                return self._array()
            case '"':
                return self._string()
            case _:
                return self._plain()

    def _peek(self) -> str:
        while self._at < len(self._text) and self._text[self._at] in " \t\r\n,:":
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _object(self) -> tuple[dict[str, Any], bool]:
        self._at += 1
        members: dict[str, Any] = {}
        while (following := self._peek()) == '"':
            name, ended = self._string()
            if not ended or not self._peek():
                return members, False
            members[name], ended = self.value()
            if not ended:
                return members, False
        self._at += 1
        return members, following == "}"

    def _array(self) -> tuple[list[Any], bool]:
        self._at += 1
        items: list[Any] = []
        while (following := self._peek()) not in ("]", ""):
            item, ended = self.value()
            if not ended:
                return items, False
            items.append(item)
        self._at += 1
        return items, following == "]"

    def _string(self) -> tuple[str, bool]:
        begin = self._at
        end = begin + 1
        while end < len(self._text) and self._text[end] != '"':
            end += 2 if self._text[end] == "\\" else 1
        self._at = end + 1
        if end < len(self._text):
            try:
                return str(json.loads(self._text[begin : end + 1])), True
            except ValueError:  # an escape that the grammar does not allow
                return self._text[begin + 1 : end], True
        written = _unescaped(self._text[begin + 1 :])
        head, space, _ = written.rpartition(" ")
        return (head if space else written).rstrip(" ,;:") + CUT, False

    def _plain(self) -> tuple[Any, bool]:
        begin = self._at
        while self._at < len(self._text) and self._text[self._at] not in ",]} \n":
            self._at += 1
        if self._at >= len(self._text):  # more digits may have followed
            return _MISSING, False
        try:
            return json.loads(self._text[begin : self._at]), True
        except ValueError:
            return _MISSING, self._at > begin


def _unescaped(text: str) -> str:
    parts, at = [], 0
    while at < len(text):
        if text[at] != "\\":
            parts.append(text[at])
        elif at + 1 < len(text):
            at += 1
            parts.append(_ESCAPES.get(text[at], text[at]))
        at += 1
    return "".join(parts)


def _completed(value: Any, schema: Mapping[str, Any]) -> Any:
    if "anyOf" in schema:
        fitting = (part for part in schema["anyOf"] if _is_of(value, part))
        return _completed(value, next(fitting, schema["anyOf"][0]))
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return value if value in schema["enum"] else schema["enum"][0]
    match schema["type"]:
        case "object":
            given = value if isinstance(value, dict) else {}
            members = schema["properties"].items()
            return {name: _completed(given.get(name, _MISSING), part) for name, part in members}
        case "array":
            items = list(value) if isinstance(value, list) else []
            items += [_MISSING] * (int(schema.get("minItems", 0)) - len(items))
            return [_completed(one, schema["items"]) for one in items[: int(schema["maxItems"])]]
        case "string":
            written = value if isinstance(value, str) else ""
            least, most = int(schema.get("minLength", 0)), int(schema["maxLength"])
            return written[:most].ljust(least)
        case "integer":
            low, high = int(schema["minimum"]), int(schema["maximum"])
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return max(low, min(high, int(value))) if number else max(low, min(high, 0))
        case "boolean":
            return value is True
    return None


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
}


def _is_of(value: Any, schema: Mapping[str, Any]) -> bool:
    if "anyOf" in schema:
        return any(_is_of(value, part) for part in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return value in schema.get("enum", [schema.get("const")])
    return isinstance(value, _TYPES[schema["type"]])
