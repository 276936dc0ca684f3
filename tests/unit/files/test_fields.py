"""Intervals in untrusted metadata."""

import math

import pytest

from engine.api.errors import ModelError
from engine.files.fields import Fields

INFINITY = {"__float__": "Infinity"}


def interval(value: object) -> tuple[float, float]:
    return Fields({"limit": value}, source="config.json").interval("limit", default=(0.0, 1.0))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([0, INFINITY], (0.0, math.inf)),
        ([{"__float__": "-Infinity"}, math.inf], (-math.inf, math.inf)),
        ([0.5, 2], (0.5, 2.0)),
        (None, (0.0, 1.0)),
    ],
)
def test_bounds_may_be_infinite(value: object, expected: tuple[float, float]) -> None:
    assert interval(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        *([0], [0, 1, 2], [1, 0], [math.nan, 1], [0, {"__float__": "NaN"}], [0, True]),
        *(["0", "1"], 5, [0, 10**400], "01", {}),
    ],
)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ModelError, match=r"limit.*a lower and an upper number"):
        interval(value)
