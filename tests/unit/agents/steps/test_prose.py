"""Texts of lists of numbers and of repetitions are no prose; short and foreign texts are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.steps.prose import is_prose


@pytest.mark.parametrize(
    "text",
    [
        "The module starts a shell with a command that the caller gives.",
        "Yes.",
        "これは短い要約です。",
        "Die Funktion liest 3 Dateien und schreibt eine.",
    ],
)
def test_sentences_are_prose(text):
    assert is_prose(text)


@pytest.mark.parametrize(
    "text",
    ["", "  \n", "1. 1.\n2. 2.\n3. 3.", "the file the file the file the file the file", "{}[]()"],
)
def test_filler_is_not(text):
    assert not is_prose(text)


@given(st.text())
def test_any_text_is_judged(text):
    assert isinstance(is_prose(text), bool)
