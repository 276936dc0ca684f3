"""Bounds for the arrays of a tool's schema that sets none.

Without them a small model may write one item after another until its answer is cut. Strings get no bound:
counting their characters costs a matcher five to ten lexer states each, 0.6 kB a state and 0.3 to 0.8 ms a
token (an uncounted string 0.02 ms), so that a file of 17,000 characters used up 100,000 states. What bounds
them is the answer's limit of tokens.
"""

from typing import Any

from engine.grammar.subschemas import with_subschemas

MAX_ITEMS = 1_024
_BOUNDED_BY = frozenset({"enum", "const", "$ref", "allOf", "anyOf", "oneOf", "maxItems"})


def bound_lengths(schema: Any) -> Any:
    """A copy of a schema in which arrays without a limit have one.

    Schemas inside `allOf` are left as they are, and so are values that `enum`, `const` or a reference
    restricts.

    Args:
        schema: a JSON schema, nested at most `limits.MAX_JSON_DEPTH` deep.
    """
    if not isinstance(schema, dict):
        return schema
    bounded = with_subschemas(schema, bound_lengths)
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "array" in kinds and not _BOUNDED_BY & schema.keys():
        least = schema.get("minItems")
        bounded["maxItems"] = max(MAX_ITEMS, least if isinstance(least, int) else 0)
    return bounded
