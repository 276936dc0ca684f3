"""Titles from first messages."""

import pytest

from engine.conversations.titles import UNTITLED, title_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("hello", "hello"),
        ("  two\n lines\t", "two lines"),
        ("\x1b[2Jclear", "[2Jclear"),
        ("", UNTITLED),
        ("\n \x00", UNTITLED),
        ("word " * 30, "word " * 11 + "word…"),
        ("x" * 100, "x" * 59 + "…"),
    ],
)
def test_a_title_is_one_short_line(text, title):
    assert title_of(text) == title


def test_truncation_does_not_split_a_grapheme():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert title_of("x" * 57 + family + "y" * 9) == "x" * 57 + "…"
    assert title_of("x" * 58 + "e\u0301" + "y" * 9) == "x" * 58 + "…"
