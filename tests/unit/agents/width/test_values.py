"""Encoded values: equality with a tolerance for floats, and Python's between numbers."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.width.probe import Encoder
from agents.width.values import same_value


def same(one, other):
    return same_value(Encoder().encode(one), Encoder().encode(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (True, 1),
        (0.1 + 0.2, 0.3),
        ([0.1 + 0.2, 1], [0.3, 1.0]),
        (math.nan, math.nan),
        (math.inf, math.inf),
        (1 + 2j, 1 + 2j),
        ({1, 2}, frozenset({2, 1})),
        ({"a": 0.1 + 0.2}, {"a": 0.3}),
        ("é", "é"),
        (b"a", bytearray(b"a")),
        (Fraction(1, 2), Fraction(2, 4)),
        (10**400, 10**400),
        (range(3), range(3)),
        (None, None),
    ],
)
def test_equal(one, other):
    assert same(one, other)
    assert same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, "1"),
        (0.3, 0.31),
        ([1], (1,)),
        ([1, 2], [1]),
        ([1, 2], [2, 1]),
        (None, False),
        (None, []),
        (math.nan, 0.0),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({1}, [1]),
        (10**400, 10**400 + 1),
        (10**400, 1.0),
        ("1", "1.0"),
    ],
)
def test_different(one, other):
    assert not same(one, other)
    assert not same(other, one)


_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
_VALUES = st.recursive(
    _PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(_VALUES)
def test_a_value_equals_itself(value):
    assert same(value, value)
