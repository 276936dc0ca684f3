import numpy as np
import pytest
from numpy.typing import NDArray

from engine.retrieval.answering.source import number_passages
from engine.retrieval.answering.support import SupportJudge
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
