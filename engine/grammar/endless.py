"""`is_endless`: whether every value of a schema would contain another one of it, without end.

Such a schema, `{"properties": {"x": {"$ref": "#"}}, "required": ["x"]}`, has no value. Its grammar can be
built, but fails in the middle of an answer.
"""

from collections.abc import Iterator
from typing import Any

from engine.files.json_pointer import at_pointer

_MAX_REFERENCES = 256
"""Different references that are followed; a schema with more is taken for one that ends."""


def is_endless(schema: Any) -> bool:
    """Whether no value of a schema ends.

    Args:
        schema: a JSON schema, nested at most `limits.MAX_JSON_DEPTH` deep.
    """
    references = set(_references(schema))
    if not references or len(references) > _MAX_REFERENCES:
        return False
    # References to schemas that have a value built of such references only.
    ending: set[str] = set()
    while found := {one for one in references - ending if _ends(at_pointer(schema, one), ending)}:
        ending |= found
    return not _ends(schema, ending)


def _references(schema: Any) -> Iterator[str]:
    inner = list(schema.values()) if isinstance(schema, dict) else schema
    for one in inner if isinstance(inner, list) else ():
        yield from _references(one)
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        yield schema["$ref"]


def _ends(schema: Any, ending: set[str]) -> bool:
    """Whether a schema has a value, as far as the keywords that demand others say."""
    if not isinstance(schema, dict) or "const" in schema or "enum" in schema:
        return True
    if isinstance(schema.get("$ref"), str) and schema["$ref"] not in ending:
        return False
    for name, combine in (("anyOf", any), ("oneOf", any), ("allOf", all)):
        branches = schema.get(name)
        if isinstance(branches, list) and not combine(_ends(one, ending) for one in branches):
            return False
    kinds = schema.get("type")
    named = kinds if isinstance(kinds, list) else [kinds]
    if any(one not in ("object", "array") for one in named):
        return True
    return ("object" in named and _object_ends(schema, ending)) or (
        "array" in named and _array_ends(schema, ending)
    )


def _object_ends(schema: dict[str, Any], ending: set[str]) -> bool:
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not isinstance(properties, dict):
        return True
    return all(_ends(properties.get(one), ending) for one in required if isinstance(one, str))


def _array_ends(schema: dict[str, Any], ending: set[str]) -> bool:
    least = schema.get("minItems", 0)
    if not isinstance(least, int) or least < 1:
        return True
    first = schema.get("prefixItems")
    listed = first[:least] if isinstance(first, list) else []
    rest = [] if len(listed) >= least else [schema.get("items")]
    return all(_ends(one, ending) for one in (*listed, *rest))
