"""Which regular expressions take exponential time."""

import pytest

from agents.detectors.security.regex_backtracking import REGEX_BACKTRACKING, is_exponential
from tests.unit.agents.detectors.seeded import rules_at


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(a+)+$",
        r"(x+x+)+y",
        r"^([a-zA-Z0-9]+)*@example\.com$",
        r"(.*)*x",
        r"(\w+\s?)+$",
        r"(a|aa)+$",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
        r"^([\w\-.]+\.)+[a-z]+$",
        r"^(?<name>(?:ab|a|b)+)+$",
    ],
)
def test_ambiguous_repetitions_are_found(pattern):
    assert is_exponential(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z]+$",
        r"(\w+\s)+$",
        r"^(\d+,)*\d+$",
        r'"([^"\\]|\\.)*"',
        r"(a+)+",  # nothing after it can fail
        r"(?:[A-Za-z0-9+/]{4})*x",
        r"(\s*,\s*\w+)*$",
        r"(ab?)+$",
        r"(",
        "(a+)+" * 300,
    ],
)
def test_others_are_not(pattern):
    assert not is_exponential(pattern)


def test_a_whole_match_must_match_to_the_end():
    text = 'import re\nre.fullmatch(r"(a+)+", x)\nre.match(r"(a+)+", x)\n'
    assert rules_at(REGEX_BACKTRACKING, "a.py", text) == [("regex-backtracking", 2)]


def test_scripts_are_looked_at_but_not_languages_with_linear_engines():
    assert rules_at(REGEX_BACKTRACKING, "a.js", 'x = /(a+)+$/;\ny = new RegExp("(b*)*c");\n') == [
        ("regex-backtracking", 1),
        ("regex-backtracking", 2),
    ]
    assert rules_at(REGEX_BACKTRACKING, "a.go", 'var x = regexp.MustCompile("(a+)+$")\n') == []
