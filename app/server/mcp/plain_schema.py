"""`plain_schema`: a JSON schema as hosts and small models read it best.

Pydantic writes titles, definitions by reference and `null` for what may be left out. Some hosts resolve no
references, and every word is read by a model in each of its turns.
"""

from typing import Any

_REFERENCE = "#/$defs/"


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object without titles, references, nulls and its own description.

    Definitions must not refer to themselves.
    """
    rest = {name: value for name, value in schema.items() if name not in ("$defs", "description")}
    return _plain_schema(rest, schema.get("$defs", {}))


def _plain_schema(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    schema = _without_null(schema)
    if "$ref" in schema:
        definition = definitions[schema["$ref"].removeprefix(_REFERENCE)]
        schema = {**definition, **{name: schema[name] for name in schema if name != "$ref"}}
    plain: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties":
            plain[name] = {key: _plain_schema(one, definitions) for key, one in value.items()}
        elif name != "title":
            plain[name] = _plain_value(value, definitions)
    return plain


def _plain_value(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return _plain_schema(value, definitions)
    if isinstance(value, list):
        return [_plain_value(one, definitions) for one in value]
    return value


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """`X or null, by default null` as `X`."""
    arms = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(arms) != 1 or schema.get("default", ...) is not None:
        return schema
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**arms[0], **rest}
