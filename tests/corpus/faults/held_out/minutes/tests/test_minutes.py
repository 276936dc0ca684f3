from minutes.figures import longest_turn, questions, shares, words_by_speaker
from minutes.transcript import Remark, parse

TEXT = """Ann: good morning all
Bob: hello
Bob: shall we begin?

Ann: yes
please do
"""


def test_parse():
    assert parse(TEXT)[-1] == Remark("Ann", "yes please do")


def test_words():
    assert words_by_speaker(parse(TEXT)) == {"Ann": 6, "Bob": 4}


def test_longest_turn():
    assert longest_turn(parse("Ann: a b c\nBob: a\nBob: b c d\n")) == ("Bob", 4)


def test_a_break_ends_a_turn():
    assert longest_turn(parse("Ann: a b\nBob: a b c\nAnn: c d\n")) == ("Bob", 3)


def test_shares():
    assert shares(parse(TEXT)) == {"Ann": 60, "Bob": 40}
    assert shares([]) == {}


def test_questions():
    assert questions(parse(TEXT)) == ["shall we begin?"]
