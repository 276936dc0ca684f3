"""Expressions without look-around: which are exact, and that none is narrower than the original."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.grammar.lookaround import without_lookaround


@pytest.mark.parametrize(
    ("pattern", "patterns"),
    [
        ("^[a-z]+$", ["^[a-z]+$"]),
        (r"^(?=.*[A-Z])(?=.*\d).{8,}$", ["^(?:.*[A-Z])", r"^(?:.*\d)", "^.{8,}$"]),
        ("^(?=^a)b", ["^a", "^b"]),
        (
            r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$",
            ["[^-+.]", r"^[+-]?0*\d*\.?\d*$"],
        ),  # pydantic's Decimal
        (r"^a\Z", [r"^a\z"]),
        (r"\(?=x[(?=]", [r"\(?=x[(?=]"]),  # no group: an escaped bracket, and a class
        ("[]()?=]a", ["[]()?=]a"]),
    ],
)
def test_what_can_be_said_exactly(pattern, patterns):
    found = without_lookaround(pattern)
    assert (list(found.patterns), found.is_exact) == (patterns, True)


@pytest.mark.parametrize(
    ("pattern", "patterns"),
    [
        ("^(?!foo)[a-z]+$", ["^[a-z]+$"]),
        ("^a(?=b)b(?!c)[cd]$", ["^ab[cd]$"]),
        ("(?<=a)b(?<!c)", ["b"]),
        ("^(?=a)b|c", ["^b|c"]),
        ("^(?:(?=a)+a|b)$", ["^(?:a|b)$"]),
        ("^(?!^[ab]+$)x*$", ["^x*$"]),
        (r"^\bfoo\b [\b]\\b$", [r"^foo [\b]\\b$"]),
        (r"(a)\1", []),
        (r"(?P<x>a)(?P=x)", []),
        (r"(?<x>a)\k<x>", []),
    ],
)
def test_what_is_left_out(pattern, patterns):
    found = without_lookaround(pattern)
    assert (list(found.patterns), found.is_exact) == (patterns, False)


ATOMS = (
    "a",
    "b",
    ".",
    "[ab]",
    "[^a]",
    "a*",
    "(?=a)",
    "(?!a)",
    "(?=b)",
    "(?!^[b]*$)",
    "(?:a|b)",
    r"\b",
    "(?=a*$)",
    "$",
)


@given(
    st.booleans(),
    st.lists(st.sampled_from(ATOMS), max_size=5).map("".join),
    st.text("abc", max_size=5),
)
def test_no_text_of_the_original_is_lost(anchored, pattern, text):
    pattern = "^" + pattern if anchored else pattern
    found = without_lookaround(pattern)
    original = re.search(pattern, text) is not None
    plain = all(re.search(one, text) for one in found.patterns)
    assert plain or not original
    if found.is_exact:
        assert plain == original
