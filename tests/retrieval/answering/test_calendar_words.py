import pytest

from engine.retrieval.answering.calendar_words import calendar_marks, is_calendar_word
from engine.retrieval.answering.names import asked_names, names_of


@pytest.mark.parametrize(
    "word",
    [
        "Monday",
        "mondays",
        "Tue",
        "June",
        "Sept",
        "Spring",
        "Q3",
        "KW",
        "FY26",
        "PM",
        "CET",
        "Christmas",
    ],
)
def test_words_of_the_calendar(word: str):
    assert is_calendar_word(word)


@pytest.mark.parametrize("word", ["Mona", "Juniper", "Zoral", "Quarterdeck", "SQLite", "B37"])
def test_other_words(word: str):
    assert not is_calendar_word(word)


def test_they_are_no_names():
    assert asked_names("Does Zoral meet on Monday, on Wednesdays in June or in Q3?") == ["Zoral"]
    assert names_of("We met on Friday the 3rd of July with Dr Holt.").certain == {"holt"}
    assert asked_names("What is the price in EUR per kWh for Mrs Berg?") == ["Berg"]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("on Thursday, 14 May", {"weekday 3", "month 5"}),
        ("2026-05-14", {"weekday 3", "month 5"}),
        ("on mondays in july", {"weekday 0", "month 7"}),
        ("It may march on.", set()),
        ("14.05.2026", {"weekday 3", "month 5"}),
        ("99/99/9999 and 2026-13-40", set()),
        ("version 3.10.2", set()),
    ],
)
def test_months_and_weekdays_of_words_and_dates(text: str, marks: set[str]):
    assert calendar_marks(text) == marks
