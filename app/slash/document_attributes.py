"""Attributes of documents as a person writes them: `year=2026` sets one, `year>=2025` is a condition."""

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from engine.api.errors import InvalidRequest
from engine.retrieval.api.passage import AttributeValue

_CONDITION = re.compile(r"([^=<>!\s]+)(!=|>=|<=|=|<|>)(.*)", re.DOTALL)
_TYPES = {"=": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_FILE = "file"
"""The key that stands for a document's path."""


def read_attribute(text: str) -> tuple[str, AttributeValue]:
    """KEY=VALUE, of which the value is a number, true, false, or text.

    Raises:
        InvalidRequest: it has another form.
    """
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InvalidRequest(f"{text!r} is not KEY=VALUE.")
    return key, _value(value)


def read_condition(text: str) -> dict[str, Any]:
    """`year>=2025` as a filter object; the operators are `= != > >= < <=`.

    Raises:
        InvalidRequest: it has another form.
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise InvalidRequest(
            f"{text!r} is no condition: write KEY=VALUE, or one of != > >= < <= in place of the =."
        )
    key, operator, value = found.groups()
    if key == _FILE:
        return {"type": _TYPES[operator], "key": key, "value": _path(value)}
    return {"type": _TYPES[operator], "key": key, "value": _value(value)}


def read_conditions(texts: Sequence[str]) -> dict[str, Any] | None:
    """The filter that all conditions fulfil; None without any.

    Raises:
        InvalidRequest: one has another form.
    """
    conditions = [read_condition(one) for one in texts]
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return {"type": "and", "filters": conditions}


def attribute_words(attributes: Mapping[str, AttributeValue]) -> str:
    """`year=2026 draft=true`: attributes as they are written."""
    return " ".join(f"{key}={_text(value)}" for key, value in attributes.items())


def _value(text: str) -> AttributeValue:
    if text in ("true", "false"):
        return text == "true"
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _path(text: str) -> str:
    return os.path.abspath(os.path.expanduser(text))


def _text(value: AttributeValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
