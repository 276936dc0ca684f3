"""`benchmarks/fact_answers.py`: how answers are counted."""

import pytest

from benchmarks.fact_answers import (
    citations,
    declined_by_kind,
    first_token,
    kept_by_change,
    outcomes,
    right,
    support,
    supported,
)
from benchmarks.fact_documents import LabelledSentence, Question

TEXT = "# Lemal pump\n\nThe Lemal pump is kept in order by Bugal Modedur. It weighs 40 kilograms.\n"


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "pump.md"
    file.write_text(TEXT)
    return {"n": 1, "file": str(file), "start": 0, "end": len(TEXT), "text": TEXT}


def answer(text, sources=(), quotes=(), **more):
    return {"text": text, "sources": list(sources), "quotes": list(quotes), **more}


def test_a_citation_exists_if_its_source_is_what_the_file_has(source):
    wrong = source | {"n": 2, "end": 5}
    found = citations([answer("It is kept [1]. So [2]. Or [3].", [source, wrong])])
    assert found["citations"] == 3
    assert found["exist"] == pytest.approx(1 / 3)


def test_a_quote_opens_if_its_bytes_are_its_text(source):
    quotes = [
        {"n": 1, "start": 14, "end": 28, "text": "The Lemal pump"},
        {"n": 1, "start": 0, "end": 30, "text": "The Lemal pump"},
    ]
    assert citations([answer("", [source], quotes)])["quotes open"] == pytest.approx(1 / 2)


def test_no_citations_have_no_share():
    assert citations([answer("None.")]) == {
        "citations": 0,
        "exist": None,
        "quotes": 0,
        "quotes open": None,
    }


@pytest.mark.parametrize(
    ("sentence", "verdict"),
    [
        ("The Lemal pump is kept in order by Bugal Modedur [1].", True),
        ("Bugal Modedur keeps the pump.", True),
        ("It weighs 40 kilograms.", True),
        ("It weighs 400 kilograms.", False),
        ("The Lemal pump is kept by Nenel Vizeren.", False),
        ("Bugal Modedur does not keep it.", False),
    ],
)
def test_a_sentence_is_supported_by_the_names_and_numbers_of_its_text(sentence, verdict):
    assert supported(sentence, TEXT) is verdict


def test_support_is_over_the_sentences_that_cite(source):
    sentences = [
        {"text": "It weighs 40 kilograms.", "cites": [1]},
        {"text": "It weighs 50 kilograms.", "cites": [1]},
        {"text": "It weighs 60 kilograms.", "cites": []},
    ]
    found = support([answer("", [source], sentences=sentences)])
    assert found == {"sentences that cite": 2, "supported": 0.5}


def test_outcomes_and_declined_questions_are_shares():
    answers = [{"outcome": one} for one in ("answered", "not_found", "unsupported", "answered")]
    questions = [
        Question("q", None, kind=kind) for kind in ("entity", "entity", "elsewhere", "entity")
    ]
    assert outcomes(answers) == {"answered": 0.5, "not_found": 0.25, "unsupported": 0.25}
    assert declined_by_kind(questions, answers) == {
        "elsewhere": 1.0,
        "entity": pytest.approx(1 / 3),
    }


def test_a_right_answer_found_all_documents_and_says_the_fact():
    questions = [Question("q", "hall B-3", ("a.md", "b.md"), 2)] * 2
    answers = [
        answer("In hall B-3.", found=["/x/a.md", "/x/b.md", "/x/c.md"]),
        answer("In hall B-4.", found=["/x/a.md"]),
    ]
    assert right(questions, answers) == {"documents found": 0.5, "said": 0.5}


def test_verdicts_are_counted_by_what_was_changed():
    sentences = [
        LabelledSentence("s", "p", True, "none"),
        LabelledSentence("s", "p", False, "value"),
        LabelledSentence("s", "p", False, "value"),
    ]
    found = kept_by_change(sentences, [True, True, False])
    assert found["kept"] == {"none": 1.0, "value": 0.5}
    assert found["right"] == pytest.approx(2 / 3)


def test_first_tokens_are_counted_with_the_cached_part_of_their_prompts():
    answers = [
        {"first token s": 0.2, "prompt tokens": 100, "cached tokens": 60},
        {"first token s": 0.4, "prompt tokens": 300, "cached tokens": 140},
    ]
    found = first_token(answers)
    assert found["p50 ms"] == pytest.approx(300)
    assert found["prompt tokens"] == 200
    assert found["cached"] == pytest.approx(0.5)
