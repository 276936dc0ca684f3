import pytest

from engine.retrieval.answering.follow_up import standalone_query

HISTORY = [
    {"role": "user", "content": "Who are you?"},
    {"role": "user", "content": "What is the default precision of decimal?"},
    {"role": "assistant", "content": "It is 28."},
]


@pytest.mark.parametrize(
    "question",
    [
        "How can I change it?",
        "And in threads?",
        "Why?",
        "What about the largest allowed value here?",
    ],
)
def test_a_question_that_refers_to_the_last_one_is_searched_with_it(question: str):
    assert (
        standalone_query(question, HISTORY)
        == f"What is the default precision of decimal? {question}"
    )


def test_a_question_with_its_own_subject_is_searched_alone():
    question = "Which module parses TOML files?"
    assert standalone_query(question, HISTORY) == question


def test_the_first_question_is_searched_alone():
    assert standalone_query("Why is it so?", []) == "Why is it so?"
    assert standalone_query("Why is it so?", HISTORY[2:]) == "Why is it so?"
