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
_LENGTHS = (("maxLength", "characters"), ("maxItems", "items"), ("maxProperties", "members"))


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
        return _with_limits(f"list of {_several(schema.get('items', {}))}", schema)
    return _with_limits(str(kind), schema)


def may_be_null(schema: Mapping[str, Any]) -> bool:
    """Whether null is one of the values."""
    return schema.get("type") == "null" or any(map(may_be_null, schema.get("anyOf", ())))


def _several(items: Mapping[str, Any]) -> str:
    text = type_text(items)
    return f"({text})" if " or " in text else text


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return f'"{value}"' if isinstance(value, str) else str(value)


def _with_limits(text: str, schema: Mapping[str, Any]) -> str:
    numbers = [
        f"{sign} {schema[name]:g}"
        for name, sign in _LIMITS
        if name in schema and abs(schema[name]) < _MANY
    ]
    lengths = [f"at most {schema[name]:,} {what}" for name, what in _LENGTHS if name in schema]
    limits = ", ".join([" and ".join(numbers), *lengths]).strip(", ")
    return f"{text} {limits}" if numbers else f"{text} ({limits})" if limits else text
