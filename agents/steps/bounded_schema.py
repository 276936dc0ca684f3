"""`bounded_schema`: a JSON schema whose longest text has a known length, for grammars of steps.

Strings, arrays and numbers get bounds, members of unknown names (maps) are left out, and all other members
are required, so that a token reserve can be kept that is enough for every answer the grammar allows.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.api.errors import InvalidTask
from agents.steps.room import answer_tokens

STYLE = {"whitespace_flexible": False}
"""llguidance's option for JSON without whitespace: whitespace would have no bound."""
_INTEGER = 999_999
_TENTHS = [index / 10 for index in range(11)]
_MAX_DEPTH = 8
_KEPT = ("enum", "const", "pattern", "minLength", "minItems")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper bounds of what a schema allows."""

    characters: int = 400
    items: int = 5


_TIGHTER = tuple(
    Bounds(*two)
    for two in [
        (4000, 12), (2000, 10), (1000, 8), (600, 8), (400, 6), (300, 5), (300, 3), (200, 3), (120, 2),
        (60, 1), (24, 1),
    ]
)  # fmt: skip


def fitting_schema(
    schema: Mapping[str, Any], tokens: int, rate: float
) -> tuple[dict[str, Any], int]:
    """The widest bounded form of which an answer takes about `tokens` tokens, and its longest text's length.

    If not even the tightest one does, that one is returned: what it takes is estimated, and an answer that
    takes more is closed by program.

    Args:
        schema: as pydantic's `model_json_schema`.
        tokens: the room for the text.
        rate: tokens per character (`agents.steps.room`).

    Raises:
        InvalidTask: the schema is recursive, or has a form that cannot be bounded.
    """
    for bounds in _TIGHTER:
        bounded = bounded_schema(schema, bounds)
        longest = longest_text(bounded)
        if answer_tokens(longest, rate) <= tokens:
            break
    return bounded, longest


def bounded_schema(
    schema: Mapping[str, Any],
    bounds: Bounds,
    definitions: Mapping[str, Any] | None = None,
    depth: int = 0,
) -> dict[str, Any]:
    """The schema with bounds, references resolved, annotations left out.

    Args:
        schema: as pydantic's `model_json_schema`.
        bounds: of strings and arrays that have no tighter ones.
        definitions: the `$defs` of the whole schema.
        depth: how deep it is nested.

    Raises:
        InvalidTask: it is recursive, or has a form that cannot be bounded.
    """
    if depth > _MAX_DEPTH:
        raise InvalidTask("The schema is recursive or nested too deep.")
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        if name not in definitions:
            raise InvalidTask(f"The schema has no definition {name}.")
        return bounded_schema(definitions[name], bounds, definitions, depth + 1)

    def inner(part: Mapping[str, Any]) -> dict[str, Any]:
        return bounded_schema(part, bounds, definitions, depth + 1)

    for several in ("anyOf", "oneOf"):
        if several in schema:
            return {"anyOf": [inner(part) for part in schema[several]]}
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return inner(schema["allOf"][0])
    kept = {name: schema[name] for name in _KEPT if name in schema}
    if "enum" in kept or "const" in kept:
        return {name: kept[name] for name in ("enum", "const") if name in kept}
    match schema.get("type"):
        case "string":
            limit = min(int(schema.get("maxLength", bounds.characters)), bounds.characters)
            return {"type": "string", **kept, "maxLength": max(limit, kept.get("minLength", 0))}
        case "integer":
            low = int(schema.get("minimum", schema.get("exclusiveMinimum", -_INTEGER - 1) + 1))
            high = int(schema.get("maximum", schema.get("exclusiveMaximum", _INTEGER + 1) - 1))
            return {"type": "integer", "minimum": low, "maximum": max(low, high)}
        case "number":
            least, most = float(schema.get("minimum", 0)), float(schema.get("maximum", _INTEGER))
            if (least, most) == (0.0, 1.0):
                return {"enum": _TENTHS}
            return {"type": "integer", "minimum": int(least), "maximum": int(most)}
        case "boolean" | "null" as kind:
            return {"type": kind}
        case "array":
            count = min(int(schema.get("maxItems", bounds.items)), bounds.items)
            items = inner(schema.get("items", {"type": "string"}))
            return {
                "type": "array",
                "items": items,
                **kept,
                "maxItems": max(count, kept.get("minItems", 0)),
            }
        case "object":
            members = {
                name: inner(part)
                for name, part in schema.get("properties", {}).items()
                if not _is_map(part)
            }
            return {
                "type": "object",
                "properties": members,
                "required": list(members),
                "additionalProperties": False,
            }
    if "properties" in schema:
        return inner({**schema, "type": "object"})
    return {"type": "string", "maxLength": bounds.characters}


def longest_text(schema: Mapping[str, Any]) -> int:
    """The length in characters of the longest text that a bounded schema allows; escapes are not counted."""
    if "anyOf" in schema:
        return max(longest_text(part) for part in schema["anyOf"])
    if "const" in schema:
        return _json_characters(schema["const"])
    if "enum" in schema:
        return max(_json_characters(value) for value in schema["enum"])
    match schema["type"]:
        case "string":
            return 2 + int(schema["maxLength"])
        case "integer":
            return max(len(str(schema["minimum"])), len(str(schema["maximum"])))
        case "boolean":
            return 5
        case "null":
            return 4
        case "array":
            return 2 + int(schema["maxItems"]) * (1 + longest_text(schema["items"]))
    members = schema["properties"].items()
    return 2 + sum(_json_characters(name) + 2 + longest_text(part) for name, part in members)


def _is_map(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" and not schema.get("properties")


def _json_characters(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))
