import numpy as np
import pytest
from numpy.typing import NDArray

from engine.retrieval.answering.numbered_passage import number_passages
from engine.retrieval.answering.support import SupportJudge
from engine.retrieval.answering.windows import SourcePart
from tests.retrieval.answering.passages import embed, passage

TABLE = "Options\n\n|---|---|\n| host | all |\n\n# Port\n\nThe port is 8000. It can be changed."


def judge(*texts: str) -> SupportJudge:
    return SupportJudge(number_passages(map(passage, texts)), embed)


def quotes(found: SupportJudge, claim: str) -> list[str]:
    return [found.sources[one.n - 1].text[one.start : one.end] for one in found.supports(claim)]


def test_two_sentences_together_can_support_a_claim():
    text = "The default port is 8000. Only the local machine can connect."
    claim = "The default port is 8000 and only the local machine can connect."
    assert quotes(judge(text), claim) == [text]


def test_the_best_source_is_first():
    weak = "By default the server that we ship listens on some port such as 8000 if it is free."
    found = judge(weak, "The server listens on port 8000 by default.")
    assert found.supports("The server listens on port 8000 by default.")[0].n == 2


@pytest.mark.parametrize(
    "claim", ["The server never listens on port 8000.", "The server doesn't listen on port 8000."]
)
def test_the_opposite_is_not_supported(claim: str):
    assert judge("The server listens on port 8000.").supports(claim) == []
    assert len(judge(claim).supports(claim)) == 1


def test_a_number_may_be_written_with_separators():
    assert judge("It runs 1,000,000 times by default.").supports(
        "It runs 1000000 times by default."
    )


def test_words_in_common_are_not_enough_without_similar_vectors():
    def different(texts: list[str]) -> NDArray[np.float32]:
        return np.eye(256, dtype=np.float32)[[len(text) % 256 for text in texts]]

    source = number_passages([passage("The server listens on port 8000 by default.")])
    claim = "The server listens on port 8000."
    assert SupportJudge(source, embed).supports(claim)
    assert SupportJudge(source, different).supports(claim) == []  # type: ignore[arg-type]


def test_the_closest_part_is_no_heading_and_no_rule_of_a_table():
    found = judge(TABLE).closest("What is the port?")
    (quote,) = [TABLE[one.start : one.end] for one in found]
    assert quote.startswith("The port is 8000.")


@pytest.mark.parametrize("claim", ["Yes.", "The answer to the question about the port is:", "42"])
def test_some_texts_say_nothing_that_can_be_checked(claim: str):
    assert not judge("x").is_checkable(claim)


def test_only_what_shares_words_is_embedded_and_once():
    texts: list[str] = []

    def counted(given: list[str]) -> NDArray[np.float32]:
        texts.extend(given)
        return embed(given)

    source = passage(
        "The server listens on port 8000. Bread is baked. Queues block. Nothing else here."
    )
    found = SupportJudge(number_passages([source]), counted)  # type: ignore[arg-type]
    claim = "The server listens on port 8000."
    assert found.supports(claim)
    assert not found.supports("Whales sleep in the sea at night.")
    assert not any(text.startswith(("Bread", "Queues", "Whales")) for text in texts)
    found.supports(claim)
    assert texts.count("The server listens on port 8000.") == 3  # two claims and one window


def test_no_sources_support_nothing():
    assert SupportJudge([], embed).supports("The port is 8000.") == []
    assert SupportJudge([], embed).closest("port") == []


def test_the_first_sentence_below_a_heading_can_be_quoted():
    text = "# Garden\n\n## Tools\nThe shed key hangs behind the tank. Return the barrow clean."
    judge = SupportJudge(number_passages([passage(text)]), embed)
    (closest,) = judge.closest("Where does the shed key hang behind?")
    assert text[closest.start : closest.end].startswith("The shed key hangs behind the tank.")


def test_another_name_is_not_supported():
    found = judge("The pump is kept in order by Lina Berg. The crane is kept in order by Ada Holm.")
    assert found.supports("The pump is kept in order by Lina Berg.")
    assert found.supports("The pump is kept in order by Bo Adler.") == []


def test_a_name_of_the_passage_in_another_sentence_is_another_name():
    found = judge(
        "The pump is kept in order by Lina Berg. Tea is at four. The crane is kept by Ada Holm."
    )
    assert found.supports("The pump is kept in order by Ada Holm.") == []


@pytest.mark.parametrize("where", ["title", "heading_path", "file"])
def test_what_a_passage_is_called_may_have_the_name(where: str):
    called = {"title": "Zoral pump", "heading_path": ("Zoral pump",), "file": "/docs/zoral.md"}
    sentence = "It is kept in order by the workshop."
    claim = "At Zoral it is kept in order by the workshop."
    plain = SupportJudge(
        number_passages([passage(sentence)]), lambda texts: embed([sentence] * len(texts))
    )
    assert plain.supports(claim) == []
    named = number_passages([passage(sentence, **{where: called[where]})])
    assert SupportJudge(named, lambda texts: embed([sentence] * len(texts))).supports(claim)


def test_a_name_of_another_source_is_known_where_a_sentence_begins():
    pump = "Lina keeps the big pump in order."
    claim = "Bodan keeps the big pump in order."
    assert judge(pump).supports(claim)  # any word may begin a sentence
    assert judge(pump, "Tea is made by Bodan at four.").supports(claim) == []


def test_nouns_of_german_are_no_names():
    text = "Die große Pumpe in der Halle wird von der Werkstatt gewartet."
    claim = "Die große Pumpe in der Anlage wird von der Werkstatt gewartet."
    assert judge(text).supports(claim)


TURBINE, BERG = "The Lemal turbine is kept by Lina Berg.", "Lina Berg works in hall C-7."
CHAINED = "The person who keeps the Lemal turbine works in hall C-7."


def chained(*texts: str) -> SupportJudge:
    parts = [SourcePart(n, 0, len(text)) for n, text in enumerate(texts, start=1)]
    return SupportJudge(number_passages(map(passage, texts)), embed, parts)


def test_the_sentences_of_a_chain_support_a_claim_together():
    assert judge(TURBINE, BERG).supports(CHAINED) == []
    found = chained(TURBINE, BERG).supports(CHAINED)
    assert [(one.n, one.is_joint) for one in found] == [(1, True), (2, True)]


@pytest.mark.parametrize(
    "claim", [CHAINED.replace("7", "9"), CHAINED.replace("works", "never works"),
              CHAINED.replace("Lemal", "Pegul")]
)  # fmt: skip
def test_a_chain_must_say_it_too(claim: str):
    assert chained(TURBINE, BERG).supports(claim) == []


def test_a_source_that_supports_alone_needs_no_chain():
    (found,) = chained(TURBINE, BERG).supports(BERG)
    assert (found.n, found.is_joint) == (2, False)


def test_a_source_without_a_name_of_the_question_supports_nothing():
    sources = number_passages(map(passage, (TURBINE, "The Pegul turbine is kept by Demul Makis.")))
    about = SupportJudge(sources, embed, about=frozenset({"lemal"}))
    assert about.supports("The Pegul turbine is kept by Demul Makis.") == []
    assert about.supports(TURBINE)
    unknown = SupportJudge(sources, embed, about=frozenset({"zoral"}))
    assert unknown.supports(TURBINE)


def test_a_verb_names_the_column_whose_cell_is_said():
    found = judge(
        "Branch | Opens | Closes | Closed on\nMill Lane | 09:00 | 17:15 | Monday\nOld Town | 10:30 | 21:00 |"
    )
    assert quotes(found, "The branch at Mill Lane closes at 17:15.") == [
        "Mill Lane | 09:00 | 17:15 | Monday"
    ]
    assert not found.supports("The branch at Mill Lane closes at 21:00.")


def test_the_value_of_another_column_in_the_same_unit_is_not_supported():
    found = judge(
        "| Hotel per night | Meals per day\nNorway | 1,450 NOK | 680 NOK\nJapan | 17,500 JPY | 7,200 JPY"
    )
    assert found.supports("The allowance for meals per day in Japan is 7,200 JPY.")
    assert not found.supports("The allowance for meals per day in Japan is 17,500 JPY.")


def test_a_cell_of_letters_and_digits_is_said_as_it_is():
    found = judge("Item | Shelf | In stock\nCoupling 90 | E12 | 17\nGasket 61 | F7 | 23")
    assert found.supports("Coupling 90 is on shelf E12.")
    assert not found.supports("Coupling 90 is on shelf F7.")


def test_a_number_of_the_heading_may_be_repeated():
    lease = passage("The lease ends on 30 September 2031.", heading_path=("Lease of warehouse 5",))
    found = SupportJudge(number_passages([lease]), embed)
    assert found.supports("The lease of warehouse 5 ends on 30 September 2031.")
    assert not found.supports("The lease of warehouse 6 ends on 30 September 2031.")
