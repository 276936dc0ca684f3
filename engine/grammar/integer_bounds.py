"""Bounds for the integers of a JSON schema that sets none.

Without them a small model may write digits until its answer is cut. The bounds are those of the integers
that all JSON parsers agree on (RFC 8259, section 6).
"""

from typing import Any

from engine.grammar.subschemas import with_subschemas

MAX_INTEGER = 2**53 - 1

_BOUNDED_BY = frozenset({"enum", "const", "multipleOf", "$ref", "allOf", "anyOf", "oneOf"})


def bound_integers(schema: Any) -> Any:
    """A copy of a schema in which integers without a minimum or a maximum have one.

    Schemas inside `allOf` are left as they are: what another branch demands may lie outside the
    bounds. So are integers that `enum`, `const`, `multipleOf` or a reference restricts.

    Args:
        schema: a JSON schema, nested at most `limits.MAX_JSON_DEPTH` deep.
    """
    if not isinstance(schema, dict):
        return schema
    bounded = with_subschemas(schema, bound_integers)
    if _allows_integers_only(schema.get("type")) and not _BOUNDED_BY & schema.keys():
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        if low is None and (high is None or (_is_number(high) and high > -MAX_INTEGER)):
            bounded["minimum"] = -MAX_INTEGER
        if high is None and (low is None or (_is_number(low) and low < MAX_INTEGER)):
            bounded["maximum"] = MAX_INTEGER
    return bounded


def _allows_integers_only(kind: Any) -> bool:
    """Whether a `type` allows integers and no other numbers."""
    kinds = kind if isinstance(kind, list) else [kind]
    return "integer" in kinds and "number" not in kinds


def _is_number(value: Any) -> bool:
    """Whether a bound is valid; the library reports one that is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
