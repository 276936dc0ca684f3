"""`check_arguments`: whether the arguments of a call are valid under the schema of its tool.

Schemas are data of third parties. References outside of them are not followed, patterns run in a regular
expression engine that is linear in the text, and the keywords that are looked at are counted: a schema of a
few kilobytes can ask for more work than any answer is worth. That holds for every part of a schema, whatever
dialect its own `$schema` names: all are read as draft 2020-12.

Cost: about 10 µs a keyword and value, at most `MAX_STEPS` of them; the library is loaded by the first check.
"""

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any

import attrs
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from pydantic import StringConstraints, TypeAdapter
from pydantic_core import SchemaError as PatternError
from pydantic_core import ValidationError as PatternMismatch
from referencing import Registry
from referencing.exceptions import Unresolvable

MAX_VALUE_DEPTH = 40
MAX_STEPS = 10_000
"""Keywords that are applied to values in one check, and schemas that are entered for it."""
_MAX_PATTERN = 4096
_WITH_OTHER_PATTERNS = frozenset({"patternProperties", "unevaluatedProperties"})
"""Where a schema has both, the library matches the patterns itself, without a bound."""


class Uncheckable(ValueError):
    """The schema cannot be followed, or not at a reasonable cost; nothing is known of the arguments."""


def check_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Check arguments.

    A pattern that the engine does not know (look-around, back-references) is taken for matched.

    Raises:
        Uncheckable: the schema is none, leads nowhere, or costs too much.
        ValueError: the arguments are not valid; the message says where and why.
    """
    if depth_of(arguments) > MAX_VALUE_DEPTH:
        raise ValueError("the arguments nest too deep")
    if _names_in(schema) >= _WITH_OTHER_PATTERNS:
        raise Uncheckable("unevaluatedProperties is not checked beside patternProperties")
    validator = _Validator(schema, registry=Registry())
    _steps.count = 0
    try:
        error = next(validator.iter_errors(dict(arguments)), None)
    except _TooManySteps:
        raise Uncheckable("the schema costs too much to be checked") from None
    except Unresolvable as problem:
        raise Uncheckable(
            f"the schema has a reference that leads nowhere: {problem!s:.100}"
        ) from problem
    except RecursionError:
        raise Uncheckable("the schema is recursive without an end") from None
    except Exception as problem:
        # The library expects a valid schema, and fails on others in any way.
        raise Uncheckable(f"the schema is not valid ({type(problem).__name__})") from problem
    if error is not None:
        where = ".".join(str(part) for part in error.absolute_path)
        raise ValueError(f"{where}: {error.message:.300}" if where else f"{error.message:.300}")


def depth_of(value: Any) -> int:
    """How deep a JSON value nests, found without recursion."""
    deepest, stack = 0, [(value, 1)]
    while stack:
        one, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((part, depth + 1) for part in _parts(one))
    return deepest


def _names_in(value: Any) -> set[str]:
    """The names of all members of a JSON value, found without recursion."""
    names: set[str] = set()
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, Mapping):
            names.update(one)
        stack.extend(_parts(one))
    return names


def _parts(value: Any) -> Iterable[Any]:
    """What an object or an array holds."""
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


class _TooManySteps(Exception):
    """The check has looked at too much."""


class _Steps(threading.local):
    """Counts the keywords of the check that runs on this thread."""

    count = 0

    def add(self, number: int = 1) -> None:
        self.count += number
        if self.count > MAX_STEPS:
            raise _TooManySteps


_steps = _Steps()


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> TypeAdapter[str] | None:
    if len(pattern) > _MAX_PATTERN:
        return None
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
    except PatternError:  # look-around, back-references, or no pattern at all
        return None


def _matches(pattern: Any, text: str) -> bool:
    _steps.add(1 + len(text) // 256)
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


def _check_unique_items(
    validator: Any, unique: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """By the texts of the items: the library compares each with each."""
    if unique is not True or not isinstance(instance, list):
        return
    _steps.add(len(instance))
    texts = {json.dumps(_plain(one), sort_keys=True) for one in instance}
    if len(texts) < len(instance):
        yield ValidationError("there are equal items")


def _plain(value: Any) -> Any:
    """1.0 as 1, because they are the same JSON number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return {key: _plain(one) for key, one in value.items()} if isinstance(value, dict) else value


def _check_enum(
    validator: Any, values: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    _steps.add(len(values))
    yield from Draft202012Validator.VALIDATORS["enum"](validator, values, instance, schema)


def _counted(check: Any) -> Any:
    """The check of a keyword, counted."""

    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        _steps.add()
        return check(validator, value, instance, schema)

    return counted


_KEYWORDS = {
    **Draft202012Validator.VALIDATORS,
    "pattern": _check_pattern,
    "patternProperties": _check_pattern_properties,
    "additionalProperties": _check_additional_properties,
    "uniqueItems": _check_unique_items,
    "enum": _check_enum,
}
_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {name: _counted(check) for name, check in _KEYWORDS.items()}
)


def _enter(validator: Any, **changes: Any) -> Any:
    """The validator of a part of the schema: the library would take another class if it has a `$schema`."""
    _steps.add()
    return attrs.evolve(validator, **changes)


_Validator.evolve = _enter
