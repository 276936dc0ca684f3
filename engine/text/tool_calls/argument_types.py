"""Types of a tool's arguments, for forms whose values do not show theirs."""

import json
from collections.abc import Mapping
from typing import Any

from engine.api.tools import Tool
from engine.files.json_pointer import at_pointer
from engine.text.tool_calls.literals import json_text

Kinds = frozenset[str]
"""Names of JSON types."""

ALL_KINDS: Kinds = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
STRING: Kinds = frozenset({"string"})
_MAX_REFERENCES = 16


def kinds_of(tool: Tool, argument: str) -> Kinds:
    """The types that an argument may have; all of them if it does not say."""
    schema = tool.properties.get(argument)
    return _kinds(schema, tool.parameters, _MAX_REFERENCES)


def json_argument(text: str, kinds: Kinds) -> str:
    """An argument written as plain text, as JSON text: of another type than string if it can be one."""
    converted = json_text(text)
    if converted is not None and _kinds_of_value(json.loads(converted)) & (kinds - STRING):
        return converted
    return json.dumps(text, ensure_ascii=False)


def _kinds(schema: Any, root: Mapping[str, Any], depth: int) -> Kinds:
    if not isinstance(schema, Mapping) or not depth:
        return ALL_KINDS
    if isinstance(schema.get("$ref"), str):
        return _kinds(at_pointer(root, schema["$ref"]), root, depth - 1)
    named = schema.get("type")
    if isinstance(named, str) or (isinstance(named, list) and named):
        kinds = frozenset([named] if isinstance(named, str) else [str(one) for one in named])
        return kinds & ALL_KINDS or ALL_KINDS
    if "const" in schema:
        return _kinds_of_value(schema["const"])
    for listed in ("enum", "anyOf", "oneOf", "allOf"):
        branches = schema.get(listed)
        if isinstance(branches, list) and branches:
            found = [
                _kinds_of_value(one) if listed == "enum" else _kinds(one, root, depth - 1)
                for one in branches
            ]
            return (
                frozenset.intersection(*found) or ALL_KINDS
                if listed == "allOf"
                else frozenset[str]().union(*found)
            )
    return ALL_KINDS


def _kinds_of_value(value: Any) -> Kinds:
    match value:
        case None:
            return frozenset({"null"})
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"number"})
        case str():
            return STRING
        case list():
            return frozenset({"array"})
        case _:
            return frozenset({"object"})
