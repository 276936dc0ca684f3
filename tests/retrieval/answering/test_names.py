import pytest

from engine.retrieval.answering.names import asked_names, capitalises_nouns, names_of
from engine.retrieval.answering.terms import folded


def test_a_capital_tells_a_name_where_no_sentence_begins():
    names = names_of("The pump is kept by Lina Berg. Visitors of the Hall sign.")
    assert names.certain == {"lina", "berg", "hall"}
    assert names.possible == {"visitor"}


@pytest.mark.parametrize("text", ["SQLite stores it.", "B37 is closed.", "NASA pays."])
def test_an_unusual_spelling_tells_a_name_anywhere(text: str):
    assert names_of(text).certain == {folded(text.split()[0])}


@pytest.mark.parametrize(
    "text", ["He said: Bread is baked.", "It is “Bread and tea”.", "I am in A."]
)
def test_openings_letters_and_frequent_words_are_no_names(text: str):
    assert names_of(text).certain == frozenset()


def test_german_is_told_by_its_frequent_words():
    assert capitalises_nouns("Die Pumpe wird von der Werkstatt gewartet.")
    assert not capitalises_nouns("The Lemal turbine is kept in order by Bugal Modedur.")
    assert not capitalises_nouns("")


def test_the_names_of_a_question_are_those_of_what_is_asked():
    question = "I use Ubuntu. Who keeps the Zoral pump of Acme?"
    assert asked_names(question) == ["Zoral", "Acme"]
    assert asked_names("About the Zoral pump") == ["Zoral"]


@pytest.mark.parametrize(
    "question",
    ["Wer wartet die Pumpe in der Halle?", "WHO KEEPS THE PUMP?", "Care of the Zoral Pump"],
)
def test_capitals_that_tell_nothing_are_no_names(question: str):
    assert asked_names(question) == []
