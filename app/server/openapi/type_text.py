"""`type_text`: a JSON schema in a few words, for tables that people read."""

from collections.abc import Mapping
from typing import Any

from app.server.openapi.schemas import REF

_LIMITS = (
    ("minimum", "≥"),
    ("exclusiveMinimum", ">"),
    ("maximum", "≤"),
    ("exclusiveMaximum", "<"),
)
_MANY = 2**31 - 1
"""Limits from here on only keep numbers within a machine's integers."""
_LENGTHS = {
    "string": ("maxLength", "characters"),
    "array": ("maxItems", "items"),
    "object": ("maxProperties", "members"),
}


def type_text(schema: Mapping[str, Any]) -> str:
    """What values a schema has, without null: `integer ≥ 1`, `list of Message`, `"a" or "b"`."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    if "const" in schema:
        return _value(schema["const"])
    if "enum" in schema:
        return " or ".join(_value(one) for one in schema["enum"])
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        texts = [type_text(one) for one in choices if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(texts)) or "null"
    kind = schema.get("type", "any value")
    if kind == "array":
        return f"list of {_several(schema.get('items', {}))}{_length(schema)}"
    return f"{kind}{_numbers(schema)}{_length(schema)}"


def _several(items: Mapping[str, Any]) -> str:
    text = type_text(items)
    return f"({text})" if " or " in text else text


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return f'"{value}"' if isinstance(value, str) else str(value)


def _numbers(schema: Mapping[str, Any]) -> str:
    limits = [
        f"{sign} {_number(schema[name])}"
        for name, sign in _LIMITS
        if name in schema and abs(schema[name]) < _MANY
    ]
    return f" {' and '.join(limits)}" if limits else ""


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _length(schema: Mapping[str, Any]) -> str:
    name, what = _LENGTHS.get(schema.get("type", ""), ("", ""))
    return f" (at most {schema[name]:,} {what})" if name in schema else ""
