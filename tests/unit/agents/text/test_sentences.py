"""Sentences, words, numbers, dates and names of texts."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.text.dates import dates
from agents.text.language import language_of_text
from agents.text.numbers import numbers, read_number
from agents.text.proper_names import proper_names
from agents.text.sentences import line_at, line_starts, paragraphs, sentences
from agents.text.words import stem, terms, words


def texts(text: str) -> list[str]:
    return [one.text for one in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith came. He left.", ["Dr. Smith came.", "He left."]),
        ("It is 3.5 m, e.g. here. Yes!", ["It is 3.5 m, e.g. here.", "Yes!"]),
        ("Am 31. Dezember kam er. Er ging.", ["Am 31. Dezember kam er.", "Er ging."]),
        ("यह पहला है। यह दूसरा।", ["यह पहला है।", "यह दूसरा।"]),
        ("今日は。明日？", ["今日は。", "明日？"]),
        ("# Title\nOne\ntwo.\n- item\n- other", ["Title", "One\ntwo.", "item", "other"]),
        ("Before.\n```\ncode. Code.\n```\nAfter.", ["Before.", "After."]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text, expected):
    assert texts(text) == expected


@given(st.text(max_size=400))
def test_sentences_have_their_places(text):
    starts = line_starts(text)
    end = 0
    for one in sentences(text):
        assert text[one.start : one.end] == one.text
        assert one.start >= end
        assert one.line == line_at(starts, one.start)
        end = one.end
    for one in paragraphs(text):
        assert text[one.start :].startswith(one.text)


@given(st.text(max_size=400))
def test_words_numbers_dates_and_names_have_their_places(text):
    for one in [*words(text), *numbers(text, spelled=True), *dates(text), *proper_names(text)]:
        assert text[one.start : one.start + len(one.text)] == one.text
    language_of_text(text)


def test_stems_join_the_forms_of_a_word():
    for forms in (["ship", "ships"], ["extend", "extended", "extends", "extension"], ["city", "cities"],
                  ["run", "running", "runs"], ["buy", "bought", "buying"], ["tile", "tiles"]):  # fmt: skip
        assert len({stem(form) for form in forms}) == 1, forms
    assert stem("news") != stem("new") or stem("bus") == "bus"


def test_devanagari_words_keep_their_vowel_signs():
    assert [word.text for word in words("हिन्दी भाषा।")] == ["हिन्दी", "भाषा"]
    assert terms("東京都") == ["東京", "京都"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("48,200", ["48200", "48.2"]),
        ("1.234,56", ["1234.56"]),
        ("1,234.56", ["1234.56"]),
        ("1'000", ["1000"]),
        ("0.125", ["0.125"]),
        ("1.234.567", ["1234567"]),
        ("2.10.0", []),
        ("L-40 utf8 3rd", None),
    ],
)
def test_a_number_has_all_its_readings(text, values):
    found = numbers(text)
    if values is None:
        assert found == []
    else:
        assert [one.readings for one in found] == [frozenset(Fraction(v) for v in values)]


@given(st.integers(0, 10**12))
def test_grouped_numbers_are_read_back(value):
    for text in (str(value), f"{value:,}", f"{value:,}".replace(",", ".")):
        number = read_number(text)
        assert number is not None
        assert value in number.readings


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("5 June 2024", ["2024-06-05"]),
        ("June 5th, 2024", ["2024-06-05"]),
        ("31. Dezember 2025", ["2025-12-31"]),
        ("1er janvier 2020", ["2020-01-01"]),
        ("12.03.2024", ["2024-03-12"]),
        ("on 2 May", ["--05-02"]),
        ("30 February 2020", []),
        ("2024-13-01", []),
    ],
)
def test_dates_are_read(text, iso):
    assert [one.iso for one in dates(text)] == iso


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cover must not be open while it is on.", "en"),
        ("Der Akku hält lange und ist nicht schwer.", "de"),
        ("Le panier contient des articles et une note.", "fr"),
        ("यह एक वाक्य है।", "hi"),
        ("これは日本語の文です。", "ja"),
        ("OK", None),
    ],
)
def test_the_language_is_recognised(text, language):
    assert language_of_text(text) == language
