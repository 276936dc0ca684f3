from collections.abc import Sequence

from engine.retrieval.answering.hops import chain_parts, followed
from engine.retrieval.answering.numbered_passage import number_passages
from engine.retrieval.api.passage import Passage
from tests.retrieval.answering.passages import passage

QUESTION = "Where does the person who keeps the Lemal turbine work?"
KEEPER = passage(
    "The heating was renewed. The Lemal turbine is kept by Lina Berg.", chunk_id=1, document_id=1
)
OTHER = passage("The Pegul turbine is kept by Demul Makis.", chunk_id=2, document_id=2)
WORKPLACE = passage(
    "Complaints go to the office. Lina Berg works in hall C7, which Ada Holm leads.",
    chunk_id=3,
    document_id=3,
)
ELSEWHERE = passage("Demul Makis works in tower D-49.", chunk_id=4, document_id=4)
HALL = passage("Ada Holm was born in Kesten.", chunk_id=5, document_id=5)
EVERYTHING = (KEEPER, OTHER, WORKPLACE, ELSEWHERE, HALL)


class Searched:
    """Finds the passages with the first word of a query, and notes the queries."""

    def __init__(self, *passages: Passage) -> None:
        self.passages, self.queries = passages, list[str]()

    def __call__(self, query: str) -> Sequence[Passage]:
        self.queries.append(query)
        return [one for one in self.passages if query.split()[0] in one.text]


def test_a_name_leads_to_the_passage_with_the_rest():
    search = Searched(*EVERYTHING)
    hops = followed(QUESTION, [OTHER, KEEPER], search)
    assert search.queries[0].startswith("Lina Berg ")
    assert "work" in search.queries[0]
    assert "turbine" not in search.queries[0]
    assert [one.text for one in hops.chain] == [
        "The Lemal turbine is kept by Lina Berg.",
        "Lina Berg works in hall C7, which Ada Holm leads.",
    ]
    assert [one.chunk_id for one in hops.passages] == [1, 3, 2]
    assert [(one.bridge, len(one.passages)) for one in hops.rounds] == [("", 2), ("Lina Berg", 1)]
    assert hops.bridge_to(WORKPLACE) == "Lina Berg"
    assert hops.bridge_to(KEEPER) == ""


def test_a_chain_can_be_longer_than_two():
    question = (
        "Where was the leader born of the hall in which the keeper of the Lemal turbine works?"
    )
    hops = followed(question, [KEEPER], Searched(*EVERYTHING))
    assert [one.passage.chunk_id for one in hops.chain] == [1, 3, 5]
    two = followed(question, [KEEPER], Searched(*EVERYTHING), rounds=2)
    assert [one.passage.chunk_id for one in two.chain] == [1, 3]
    assert [one.chunk_id for one in hops.best(1)] == [1, 3, 5]


def test_a_question_that_is_answered_is_not_followed():
    search = Searched(*EVERYTHING)
    hops = followed("Which turbine is kept by Lina Berg?", [KEEPER, OTHER], search)
    assert (hops.chain, search.queries) == ([], [])
    assert hops.passages == [KEEPER, OTHER]


def test_what_explains_nothing_more_is_not_taken():
    idle = passage("Lina Berg likes tea.", chunk_id=6, document_id=6)
    search = Searched(KEEPER, idle)
    hops = followed(QUESTION, [KEEPER], search)
    assert len(search.queries) == 1
    assert (hops.chain, len(hops.rounds)) == ([], 1)


def test_only_a_passage_with_the_names_of_the_question_leads_on():
    search = Searched(*EVERYTHING)
    assert followed(QUESTION, [OTHER], search).chain == []
    assert search.queries == []


def test_a_passage_that_is_there_is_linked_without_a_search():
    search = Searched(*EVERYTHING)
    hops = followed(QUESTION, [OTHER, WORKPLACE, KEEPER], search)
    assert [one.passage.chunk_id for one in hops.chain] == [1, 3]
    assert not any(query.startswith("Lina Berg") for query in search.queries)
    assert len(hops.rounds) == 1
    assert [one.chunk_id for one in hops.passages] == [1, 3, 2]


def test_a_single_round_searches_no_more():
    search = Searched(*EVERYTHING)
    assert followed(QUESTION, [KEEPER], search, rounds=1).chain == []
    assert search.queries == []


def test_in_german_no_word_is_a_name_to_follow():
    keeper = passage("Die Lemal Turbine wird von der Abteilung in Halle vier gewartet.")
    search = Searched(keeper)
    followed("Wo arbeitet, wer die Lemal Turbine wartet?", [keeper], search)
    assert search.queries == []


def test_a_chain_is_found_in_the_texts_that_are_read():
    hops = followed(QUESTION, [KEEPER], Searched(*EVERYTHING))
    sources = number_passages([WORKPLACE, KEEPER])
    parts = chain_parts(hops.chain, sources)
    assert [one.n for one in parts] == [2, 1]
    assert [sources[one.n - 1].text[one.start : one.end] for one in parts] == [
        one.text for one in hops.chain
    ]
    assert chain_parts(hops.chain, sources[:1]) == []
