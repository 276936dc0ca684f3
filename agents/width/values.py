"""`same_value`: whether two values that the probe encoded are equal, floats with a tolerance."""

import math
from typing import Any

_REL = 1e-6
_ABS = 1e-9


def same_value(one: Any, other: Any) -> bool:
    """Whether two encoded values are equal.

    `["int", "2"]` equals `["float", "2.0"]` and `["bool", "True"]` equals `["int", "1"]`, as in Python.
    Members of sets and dictionaries were sorted by the probe; floats in them are compared in that order. A
    value that was cut equals none.
    """
    kind, value = one
    other_kind, other_value = other
    if "cut" in (kind, other_kind):
        return False
    number, second = _number(kind, value), _number(other_kind, other_value)
    if number is not None and second is not None:
        return _close(number, second)
    if kind != other_kind:
        return False
    if kind in ("list", "tuple", "set", "iterator"):
        return len(value) == len(other_value) and all(map(same_value, value, other_value))
    if kind == "dict":
        return len(value) == len(other_value) and all(
            same_value(key, other_key) and same_value(item, other_item)
            for (key, item), (other_key, other_item) in zip(value, other_value, strict=True)
        )
    if kind == "object":
        return value[0] == other_value[0] and same_value(value[1], other_value[1])
    return bool(value == other_value)


def _number(kind: str, value: Any) -> complex | int | None:
    match kind:
        case "bool":
            return int(value == "True")
        case "int" if not value.startswith(("0x", "-0x")):
            return int(value)
        case "float":
            return complex(float(value))
        case "complex":
            return complex(value)
    return None


def _close(one: complex | int, other: complex | int) -> bool:
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    try:
        first, second = complex(one), complex(other)
    except OverflowError:
        return False
    pairs = ((first.real, second.real), (first.imag, second.imag))
    return all(
        (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=_REL, abs_tol=_ABS)
        for a, b in pairs
    )
