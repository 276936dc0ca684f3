"""Schemas of arguments from servers: checking values by them, and what of them a grammar can offer.

A schema is data of a third party. References outside of it are not followed, and its patterns run in a
regular expression engine that is linear in the text; one that this engine does not know is left to the
server.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any

from jsonschema import Draft202012Validator, FormatChecker, SchemaError, ValidationError
from jsonschema.validators import extend
from pydantic import StringConstraints, TypeAdapter
from pydantic_core import SchemaError as PatternError
from pydantic_core import ValidationError as PatternMismatch
from referencing import Registry
from referencing.exceptions import Unresolvable

MAX_DEPTH = 12
MAX_VALUE_DEPTH = 40
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")
_COMBINED = ("anyOf", "oneOf", "allOf")


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> TypeAdapter[str] | None:
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
    except PatternError:  # look-around, back-references, or no pattern at all
        return None


def _matches(pattern: Any, text: str) -> bool:
    adapter = _pattern(str(pattern))
    if adapter is None:
        return True
    try:
        adapter.validate_python(text)
    except PatternMismatch:
        return False
    return True


def _check_pattern(
    validator: Any, pattern: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"{instance!r:.80} does not match {pattern!r:.80}")


def _check_pattern_properties(
    validator: Any, properties: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, part in properties.items():
            for name, value in instance.items():
                if _matches(pattern, name):
                    yield from validator.descend(value, part, path=name, schema_path=pattern)


def _check_additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    patterns = schema.get("patternProperties", {})
    for name, value in instance.items():
        if name in schema.get("properties", {}) or any(_matches(one, name) for one in patterns):
            continue
        if allowed is False:
            yield ValidationError(f"there is no argument {name!r:.80}")
        elif isinstance(allowed, dict):
            yield from validator.descend(value, allowed, path=name)


_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional_properties,
    },
)


def refused_schema(schema: Mapping[str, Any]) -> str:
    """Why arguments cannot be checked by the schema; empty if they can."""
    if schema.get("type", "object") != "object":
        return "its arguments are no object"
    if _depth(schema) > MAX_VALUE_DEPTH:
        return "its schema nests too deep"
    try:
        # Without formats: a pattern in the syntax of another language is none for Python, and no mistake.
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(()))
    except (SchemaError, RecursionError) as error:
        message = error.message if isinstance(error, SchemaError) else "it nests too deep"
        return f"its schema is not valid: {message:.200}"
    return ""


def check_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Check arguments.

    Raises:
        ValueError: they do not match the schema, or it cannot be followed.
    """
    if _depth(arguments) > MAX_VALUE_DEPTH:
        raise ValueError("the arguments nest too deep")
    try:
        error = next(_Validator(schema, registry=Registry()).iter_errors(dict(arguments)), None)
    except Unresolvable as problem:
        raise ValueError(
            f"the schema has a reference that leads nowhere: {problem!s:.100}"
        ) from problem
    except RecursionError:
        raise ValueError("the schema is recursive without an end") from None
    if error is not None:
        where = ".".join(str(part) for part in error.absolute_path)
        raise ValueError(f"{where}: {error.message:.300}" if where else f"{error.message:.300}")


def offered_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a schema that grammars know, in the form of pydantic's: no patterns, no texts.

    A value that it allows may still be refused by `check_arguments`.
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


def _depth(value: Any) -> int:
    """How deep a JSON value nests, found without recursion."""
    deepest, stack = 0, [(value, 1)]
    while stack:
        one, depth = stack.pop()
        deepest = max(deepest, depth)
        inner = (
            one.values()
            if isinstance(one, Mapping)
            else one
            if isinstance(one, list | tuple)
            else ()
        )
        stack.extend((part, depth + 1) for part in inner)
    return deepest
