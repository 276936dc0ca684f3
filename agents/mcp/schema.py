"""Schemas of arguments from servers: whether values can be checked by them, and what a grammar can offer.

A schema is data of a third party; `engine.text.tool_calls.argument_check` follows it.
"""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, SchemaError

from engine.text.tool_calls.argument_check import MAX_VALUE_DEPTH, depth_of

MAX_DEPTH = 12
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")
_COMBINED = ("anyOf", "oneOf", "allOf")


def refused_schema(schema: Mapping[str, Any]) -> str:
    """Why arguments cannot be checked by the schema; empty if they can."""
    if schema.get("type", "object") != "object":
        return "its arguments are no object"
    if depth_of(schema) > MAX_VALUE_DEPTH:
        return "its schema nests too deep"
    try:
        # Without formats: a pattern in the syntax of another language is none for Python, and no mistake.
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(()))
    except (SchemaError, RecursionError) as error:
        message = error.message if isinstance(error, SchemaError) else "it nests too deep"
        return f"its schema is not valid: {message:.200}"
    return ""


def offered_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a schema that grammars know, in the form of pydantic's: no patterns, no texts.

    A value that it allows may still be refused by `argument_check.check_arguments`.
    """
    definitions = {**_mapping(schema.get("definitions")), **_mapping(schema.get("$defs"))}
    offered = _offered(schema, 0)
    offered.setdefault("type", "object")
    if definitions:
        offered["$defs"] = {name: _offered(part, 0) for name, part in definitions.items()}
    return offered


def _offered(schema: Any, depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return {"type": "string"}
    if isinstance(schema.get("$ref"), str):
        return {"$ref": schema["$ref"]}
    if schema.get("enum"):
        return {"enum": list(schema["enum"])}
    if "const" in schema:
        return {"const": schema["const"]}
    for name in _COMBINED:
        parts = schema.get(name)
        if isinstance(parts, list) and parts and "properties" not in schema:
            # Of parts that all must hold, the first is offered.
            kept = parts[:1] if name == "allOf" else parts
            return {"anyOf": [_offered(part, depth + 1) for part in kept]}
    kind = schema.get("type")
    if isinstance(kind, list):
        several = [_offered({**schema, "type": one}, depth + 1) for one in kind]
        return {"anyOf": several} if several else {"type": "string"}
    found: dict[str, Any] = {"type": kind} if isinstance(kind, str) else {}
    found |= {name: schema[name] for name in _NUMBERS if _is_number(schema.get(name))}
    found |= {name: int(schema[name]) for name in _COUNTS if _is_number(schema.get(name))}
    if "items" in schema:
        found["items"] = _offered(schema["items"], depth + 1)
    if "properties" in schema:
        members = _mapping(schema["properties"])
        found["properties"] = {name: _offered(part, depth + 1) for name, part in members.items()}
        found["required"] = [one for one in schema.get("required", ()) if one in members]
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
