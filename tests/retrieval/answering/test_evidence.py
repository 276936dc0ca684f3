"""Whether passages answer a question: by their sentences and rows, and which rule declined."""

import pytest

from engine.retrieval.answering.evidence import MIN_EVIDENCE, Declined, best_evidence, unknown_names
from tests.retrieval.answering.passages import embed, passage

TABLE = "Week | Captain | Backup\n27 | Mira Holt | Jonas\n29 | Priya Nair | Mira\n" + (
    "Many other words fill this page about bread and boats and brass.\n" * 5
)


def test_a_row_of_a_table_is_enough_where_the_passage_is_not():
    far = passage(TABLE, dense=0.31)
    assert best_evidence("Who is captain in week 27?", [far], embed) >= MIN_EVIDENCE
    assert best_evidence("Who repaired the roof of the church?", [far], embed) < MIN_EVIDENCE


def test_less_is_asked_where_one_passage_stands_out():
    text = "Hotels up to 130 EUR need no approval. Laptops are replaced. Badges are lost."
    question = "How expensive may hotels be?"
    leading = passage(text, dense=0.0, score=0.3)
    others = passage("Another subject is here.", dense=0.0, score=0.29, chunk_id=2)
    assert best_evidence(question, [leading], embed) == pytest.approx(
        best_evidence(question, [leading, others], embed) + 0.12
    )


def test_passages_that_are_close_enough_cost_no_embedding():
    def never(texts):
        raise AssertionError

    assert best_evidence("Who?", [passage("x", dense=0.6)], never) == 0.6
    assert best_evidence("Who?", [], never) == -1


@pytest.mark.parametrize(
    ("declined", "rule", "words"),
    [
        (Declined(0.38, 0.44), "evidence", "the closest has 0.38, and 0.44 is asked for."),
        (
            Declined(0.38, 0.44, ("Zoral", "Acme")),
            "names",
            "No document has the name Zoral or Acme.",
        ),
        (Declined(-1.0, 0.44), "nothing", "There is no passage to answer from."),
    ],
)
def test_the_rule_that_declined_is_said(declined: Declined, rule: str, words: str):
    assert declined.rule == rule
    assert declined.sentence.endswith(words)


@pytest.mark.parametrize("stored", ["kx-4471", "kx4471", "KX\u20114471"])
def test_a_code_is_known_joined_and_in_parts(stored: str):
    from engine.retrieval.store.word_forms import search_form

    words = search_form(stored).split()
    words += [part for word in words for part in word.split("-")]
    known = [passage("other text")]
    mentions = lambda wanted: any(one in words for one in search_form(wanted).split())  # noqa: E731
    assert unknown_names("Who makes the KX-4471 filter?", known, mentions) == ()
    assert unknown_names("Who makes the QZ-4471 filter?", known, mentions) == ("QZ",)
