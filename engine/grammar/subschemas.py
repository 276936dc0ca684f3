"""The schemas inside a JSON schema that describe values of their own."""

from collections.abc import Callable
from typing import Any

_SCHEMAS = ("items", "additionalProperties", "contains", "not", "if", "then", "else")
_LISTS = ("prefixItems", "anyOf", "oneOf", "items")
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def with_subschemas(schema: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """A copy with each inner schema changed.

    Schemas inside `allOf` are left as they are: what another branch demands may contradict a change.
    """
    changed = dict(schema)
    for name in _SCHEMAS:
        if isinstance(schema.get(name), dict):
            changed[name] = change(schema[name])
    for name in _LISTS:
        if isinstance(schema.get(name), list):
            changed[name] = [change(one) for one in schema[name]]
    for name in _MAPS:
        if isinstance(schema.get(name), dict):
            changed[name] = {key: change(one) for key, one in schema[name].items()}
    return changed
