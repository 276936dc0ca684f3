"""Bounds for the strings and arrays of a tool's schema that sets none.

Without them a small model may write one string, or one item after another, until its answer is cut. A string
costs its matcher up to two lexer states a character, as long as it is; strings with equal bounds share them
(`limits.CALL_LEXER_STATES`).
"""

from typing import Any

from engine.grammar.subschemas import with_subschemas

MAX_STRING = 32_768
"""Characters of a string without a bound: more than the files that an agent writes in one call."""
MAX_ITEMS = 1_024
_RESTRICTED = frozenset({"enum", "const", "$ref", "allOf", "anyOf", "oneOf"})
_STRING_BOUNDED_BY = _RESTRICTED | {"maxLength", "pattern", "format"}
_ARRAY_BOUNDED_BY = _RESTRICTED | {"maxItems"}


def bound_lengths(schema: Any) -> Any:
    """A copy of a schema in which strings and arrays without a limit have one.

    Schemas inside `allOf` are left as they are, and so are values that `enum`, `const` or a reference
    restricts, and strings with a pattern or format: its product with a length is costly.

    Args:
        schema: a JSON schema, nested at most `limits.MAX_JSON_DEPTH` deep.
    """
    if not isinstance(schema, dict):
        return schema
    bounded = with_subschemas(schema, bound_lengths)
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "string" in kinds and not _STRING_BOUNDED_BY & schema.keys():
        bounded["maxLength"] = max(MAX_STRING, _count(schema.get("minLength")))
    if "array" in kinds and not _ARRAY_BOUNDED_BY & schema.keys():
        bounded["maxItems"] = max(MAX_ITEMS, _count(schema.get("minItems")))
    return bounded


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
