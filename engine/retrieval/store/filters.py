"""`where` filters as SQL: OpenAI's filter objects over a document's attributes and its path (`file`).

    {"type": "eq", "key": "year", "value": 2026}
    {"type": "and", "filters": [..., ...]}

A comparison is false for a document without the attribute, or with one of another type; `ne` and `nin` are
the opposites of `eq` and `in`, and so true for it.
"""

from collections.abc import Mapping, Sequence

from engine.api.errors import InvalidRequest
from engine.retrieval.api.passage import AttributeValue

Where = Mapping[str, object]

FILE_KEY = "file"
MAX_DEPTH = 16
MAX_CONDITIONS = 512

_COMPARISONS = {"eq": "=", "ne": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_SETS = ("in", "nin")
_COMPOUNDS = {"and": " AND ", "or": " OR "}
_NEGATED = ("ne", "nin")


def document_condition(where: Where) -> tuple[str, list[object]]:
    """An SQL condition on the table `document`, and its parameters.

    Raises:
        InvalidRequest: the filter is malformed; the message names the part.
    """
    parameters: list[object] = []
    return _condition(where, parameters, depth=0), parameters


def attribute_kind(value: AttributeValue) -> tuple[str, str | float | int]:
    """How an attribute is stored: its kind and its value.

    Raises:
        InvalidRequest: the value is neither text, nor a finite number, nor a boolean.
    """
    if isinstance(value, bool):
        return "bool", int(value)
    if isinstance(value, str):
        return "text", value
    if isinstance(value, int | float) and abs(value) < float("inf"):
        return "number", float(value)
    raise InvalidRequest(
        f"An attribute must be text, a finite number or true or false, not {value!r}.",
        param="attributes",
    )


def _condition(where: object, parameters: list[object], *, depth: int) -> str:
    if not isinstance(where, Mapping):
        raise _wrong(f"a filter must be an object, not {where!r}")
    kind = where.get("type")
    if not isinstance(kind, str) or kind not in (*_COMPOUNDS, *_COMPARISONS, *_SETS):
        known = ", ".join((*_COMPARISONS, *_SETS, *_COMPOUNDS))
        raise _wrong(f"type must be one of {known}, not {kind!r}")
    expected = {"type", "filters"} if kind in _COMPOUNDS else {"type", "key", "value"}
    if unknown := set(where) - expected:
        raise _wrong(f"{kind} has no field {sorted(map(str, unknown))[0]}")
    if kind in _COMPOUNDS:
        return _compound(kind, where.get("filters"), parameters, depth)
    key = where.get("key")
    if not isinstance(key, str) or not key:
        raise _wrong(f"{kind} needs a key, the name of an attribute")
    if kind in _SETS:
        return _negate(kind, _member(kind, key, where.get("value"), parameters))
    value = where.get("value")
    if not isinstance(value, str | int | float):
        raise _wrong(f"the value of {kind} {key} must be text, a number or true or false")
    return _negate(kind, _comparison(key, _COMPARISONS[kind], value, parameters))


def _compound(kind: str, filters: object, parameters: list[object], depth: int) -> str:
    if not isinstance(filters, Sequence) or isinstance(filters, str) or not filters:
        raise _wrong(f"{kind} needs filters, a list that is not empty")
    if depth >= MAX_DEPTH:
        raise _wrong(f"it is nested more than {MAX_DEPTH} deep")
    parts = [_condition(one, parameters, depth=depth + 1) for one in filters]
    return f"({_COMPOUNDS[kind].join(parts)})"


def _member(kind: str, key: str, values: object, parameters: list[object]) -> str:
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise _wrong(f"the value of {kind} {key} must be a list that is not empty")
    for value in values:
        if not isinstance(value, str | int | float):
            raise _wrong(f"the values of {kind} {key} must be text, numbers or true or false")
    parts = [_comparison(key, "=", value, parameters) for value in values]
    return f"({' OR '.join(parts)})"


def _comparison(key: str, operator: str, value: AttributeValue, parameters: list[object]) -> str:
    if len(parameters) >= MAX_CONDITIONS * 3:
        raise _wrong(f"it has more than {MAX_CONDITIONS} conditions")
    kind, stored = attribute_kind(value)
    if key == FILE_KEY:
        if kind != "text":
            raise _wrong(f"{FILE_KEY} must be compared with text")
        parameters.append(stored)
        return f"document.path {operator} ?"
    parameters.extend((key, kind, stored))
    return (
        "document.id IN (SELECT document_id FROM attribute "
        f"WHERE key = ? AND kind = ? AND value {operator} ?)"
    )


def _negate(kind: str, condition: str) -> str:
    return f"NOT ({condition})" if kind in _NEGATED else condition


def _wrong(what: str) -> InvalidRequest:
    return InvalidRequest(f"The filter is wrong: {what}.", param="filters")
