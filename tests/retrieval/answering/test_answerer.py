from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.api.errors import EngineUnavailable, InvalidRequest
from engine.api.request import FinishReason, Request, SamplingParams
from engine.api.snapshot import EngineSnapshot
from engine.retrieval.answering.answerer import (
    NOT_FOUND,
    Answerer,
    AnswerOptions,
    ask,
)
from engine.retrieval.answering.closest_quotes import NOT_SUPPORTED, ONLY_QUOTES
from engine.retrieval.answering.names import folded_words
from engine.retrieval.api.passage import Passage
from engine.retrieval.store.filters import Where
from tests.fakes.scripted_client import ScriptedClient
from tests.retrieval.answering.passages import embed, passage

PORT = passage("The server listens on port 8000 by default.", chunk_id=1, dense=0.7)
QUEUE = passage(
    "A queue blocks when it is full.", chunk_id=2, document_id=2, file="/docs/b.md", dense=0.6
)


class Documents:
    """A collection that finds the same passages for every query."""

    def __init__(self, *passages: Passage) -> None:
        self.passages = list(passages)
        self.queries: list[tuple[str, int, Where | None]] = []

    def search(self, query: str, *, k: int = 8, where: Where | None = None) -> list[Passage]:
        self.queries.append((query, k, where))
        return self.passages[:k]

    def mentions(self, words: str, *, where: Where | None = None) -> bool:
        return bool(folded_words(words) & folded_words(" ".join(one.text for one in self.passages)))

    def section(self, passage: Passage) -> str:
        return f"{passage.text} It logs to standard error."

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return embed(texts)


class Sized(ScriptedClient):
    """A model with so many parameters."""

    def __init__(self, parameters: int, script: Sequence[str]) -> None:
        super().__init__(script)
        self._parameters = parameters

    def snapshot(self) -> EngineSnapshot:
        snapshot = super().snapshot()
        assert snapshot.model is not None
        return replace(snapshot, model=replace(snapshot.model, parameters=self._parameters))


def test_answers_with_checked_citations():
    client = ScriptedClient(
        ["The server listens on port 8000 [1]. A queue blocks when it is full [1]."]
    )
    shown: list[str] = []
    answer = ask(Documents(PORT, QUEUE), "Which port?", client, on_text=shown.append)
    assert answer.text == (
        "The server listens on port 8000 [1]. A queue blocks when it is full [unsupported]. [2]"
    )
    assert "".join(shown) == answer.text
    assert answer.outcome == "answered"
    assert [one.n for one in answer.citations] == [1, 2]
    assert [(one.n, one.exists) for one in answer.dropped] == [(1, True)]
    assert answer.finish_reason is FinishReason.STOP
    assert answer.completion_tokens > 0


def test_the_model_can_only_cite_what_it_was_given():
    client = ScriptedClient(["Yes."])
    ask(Documents(PORT, QUEUE), "Which port?", client)
    (request,) = client.requests
    assert request.sampling.grammar is not None
    assert "(?:1|2)" in request.sampling.grammar.source
    assert "[1] a.md\n> The server listens on port 8000" in client.prompt_text()


def test_too_little_evidence_is_not_answered_and_asks_no_model():
    client = ScriptedClient()
    far = passage("Unrelated words.", dense=0.2)
    answer = ask(Documents(far), "Who won?", client)
    assert answer.outcome == "not_found"
    assert answer.text == (
        f"{NOT_FOUND} No passage is close enough to the question: the closest has 0.20, and 0.44 is "
        "asked for."
    )
    assert answer.declined.rule == "evidence"
    assert answer.citations == ()
    assert answer.passages == (far,)
    assert client.requests == []


def test_the_threshold_of_evidence_can_be_lifted():
    client = ScriptedClient(["Unrelated words are here."])
    far = passage("Unrelated words.", dense=0.2)
    ask(Documents(far), "Who won?", client, options=AnswerOptions(min_evidence=-1))
    assert len(client.requests) == 1


def test_an_empty_collection_does_not_answer():
    options = AnswerOptions(min_evidence=-1)
    assert ask(Documents(), "Who won?", ScriptedClient(), options=options).outcome == "not_found"


def test_an_unsupported_answer_says_so_and_quotes_the_passages():
    client = Sized(8_000_000_000, ["Bread is baked from flour and water [2]."])
    answer = ask(Documents(PORT, QUEUE), "Which port does the server use?", client)
    assert answer.outcome == "unsupported"
    assert answer.text == (
        "Bread is baked from flour and water [unsupported].\n\n"
        f"{NOT_SUPPORTED}\n“The server listens on port 8000 by default.” [1]\n"
        "“A queue blocks when it is full.” [2]"
    )
    assert [one.n for one in answer.citations] == [1, 2]


def test_of_a_small_model_only_supported_sentences_are_shown():
    said = "Bread is baked from flour. The server listens on port 8000 [1]. Bread is good."
    shown: list[str] = []
    answer = ask(Documents(PORT), "Which port?", Sized(135_000_000, [said]), on_text=shown.append)
    assert answer.text == "The server listens on port 8000 [1]."
    assert "".join(shown) == answer.text
    assert answer.outcome == "answered"


def test_an_unsupported_answer_of_a_small_model_is_not_shown():
    client = Sized(135_000_000, ["Bread is baked from flour and water [1]."])
    answer = ask(Documents(PORT), "Which port does the server use?", client)
    assert answer.text == f"{ONLY_QUOTES}\n“The server listens on port 8000 by default.” [1]"
    assert (answer.outcome, [one.n for one in answer.citations]) == ("unsupported", [1])


def test_a_sentence_about_the_question_is_evidence_enough():
    mixed = passage(
        "Tea is served at four. The server listens on port 8000. Dogs stay outside.", dense=0.2
    )
    client = ScriptedClient(["The server listens on port 8000 [1]."])
    assert ask(Documents(mixed), "Which port does the server listen on?", client).citations
    unrelated = ask(Documents(mixed), "Who won the cup of nations?", client)
    assert unrelated.outcome == "not_found"


def test_overlapping_passages_are_one_source():
    again = passage(PORT.text + " Bread.", chunk_id=3)
    client = ScriptedClient(["Bread is baked from flour and water."])
    answer = ask(Documents(PORT, again, QUEUE), "Which port does the server listen on?", client)
    assert [one.text for one in answer.sources] == [again.text, QUEUE.text]
    assert answer.text.count("The server listens on port 8000 by default.") == 1
    assert [one.n for one in answer.citations] == [1, 2]


def test_an_answer_that_repeats_itself_is_cancelled():
    client = ScriptedClient(["A queue blocks when it is full. " * 2 + "Bread is baked."])
    answer = ask(Documents(QUEUE), "When does a queue block?", client)
    assert answer.text == "A queue blocks when it is full. [1]"
    assert answer.finish_reason is FinishReason.STOP


def test_sections_are_read_where_they_fit_and_quoted_with_their_bytes():
    section = "The server listens on port 8000 by default. It logs to standard error."
    found = passage(PORT.text, start=50, section_start=50, section_end=50 + len(section))
    client = ScriptedClient(["It logs to standard error [1]."])
    answer = ask(
        Documents(found), "Where does it log?", client, options=AnswerOptions(sections=True)
    )
    (citation,) = answer.citations
    assert citation.source.text == section
    assert (citation.quotes[0].start, citation.quotes[0].end) == (50 + 44, 50 + len(section))
    client = ScriptedClient(["Yes."])
    ask(Documents(found), "Where?", client, options=AnswerOptions(sections=False))
    assert "logs to standard error" not in client.prompt_text()


@pytest.mark.parametrize(("parameters", "read"), [(135_000_000, False), (8_000_000_000, True)])
def test_small_models_read_passages_and_large_ones_sections(parameters: int, read: bool):
    found = passage(PORT.text, section_end=len(PORT.text) + 28)
    client = Sized(parameters, ["Yes."])
    ask(Documents(found), "Where?", client)
    assert ("logs to standard error" in client.prompt_text()) is read


def test_passages_of_the_last_answer_stay_in_place():
    client = ScriptedClient(["Yes.", "No."])
    answerer, documents = Answerer(client), Documents(PORT, QUEUE)
    first = answerer.ask(documents, "Which port?")
    documents.passages.reverse()
    second = answerer.ask(
        documents, "And the queue?", previous=[one.passage.chunk_id for one in first.sources]
    )
    assert [one.passage.chunk_id for one in second.sources] == [1, 2]


def test_filter_and_count_reach_the_search():
    documents = Documents(PORT)
    where = {"type": "eq", "key": "year", "value": 2026}
    ask(documents, "Which port?", ScriptedClient(["Yes."]), options=AnswerOptions(k=5, where=where))
    assert documents.queries == [("Which port?", 5, where)]


def test_a_context_without_room_is_refused():
    client = ScriptedClient(context_length=300)
    with pytest.raises(InvalidRequest, match="no room for a passage"):
        ask(Documents(PORT), "Which port?", client)


@pytest.mark.parametrize(("limit", "wanted"), [(None, None), (40, 40)])
def test_an_answer_without_a_limit_leaves_three_quarters_to_the_passages(limit, wanted):
    client = ScriptedClient(["Port 8000."], context_length=4096)
    options = AnswerOptions(sampling=SamplingParams(temperature=0.0, max_tokens=limit))
    ask(Documents(PORT), "Which port?", client, options=options)
    assert client.requests[-1].sampling.max_tokens == wanted
    assert len(client.requests[-1].prompt_ids) <= 3072


def test_a_cancelled_answer_keeps_its_text():
    class Endless(Sized):
        def _answer(self, request: Request) -> None:
            self._deliver(request, "The server listens on", None)  # type: ignore[arg-type]

    shown: list[str] = []
    answer = Answerer(Endless(8_000_000_000, [])).ask(
        Documents(PORT), "Which port?", on_text=shown.append, cancelled=lambda: bool(shown)
    )
    assert answer.text.startswith("The server listens on")
    assert answer.finish_reason is FinishReason.ABORT


def test_a_failed_engine_is_reported():
    class Failing(ScriptedClient):
        def _answer(self, request: Request) -> None:
            self._deliver(request, "", FinishReason.ERROR)

    with pytest.raises(EngineUnavailable):
        ask(Documents(PORT), "Which port?", Failing())


def test_a_follow_up_is_searched_with_the_question_before():
    documents = Documents(PORT)
    history = [
        {"role": "user", "content": "Which port does the server use?"},
        {"role": "assistant", "content": "It is 8000."},
    ]
    client = ScriptedClient(["Yes."])
    answer = Answerer(client).ask(documents, "How do I change it?", history=history)
    assert documents.queries[0][0] == "Which port does the server use? How do I change it?"
    assert answer.query == documents.queries[0][0]
    prompt = client.prompt_text()
    assert (
        prompt.index("It is 8000.") < prompt.index("[1] a.md") < prompt.index("How do I change it?")
    )


@pytest.mark.parametrize(("parameters", "large"), [(135_000_000, False), (8_000_000_000, True)])
def test_only_large_models_read_the_question_first_and_may_write_paragraphs(
    parameters: int, large: bool
):
    client = Sized(parameters, ["A queue blocks when it is full [1].\n\nA full queue blocks [1]."])
    answer = ask(Documents(QUEUE), "When does a queue block?", client)
    asked = "When does a queue block?"
    assert client.prompt_text().count(asked) == (2 if large else 1)
    assert (client.prompt_text().index(asked) < client.prompt_text().index("[1] ")) is large
    assert ("A full queue blocks" in answer.text) is large


KEEPER = passage("The Lemal turbine is kept by Lina Berg.", chunk_id=1, file="/docs/lemal.md")
HALL = passage(
    "Lina Berg works in hall C-7.", chunk_id=2, document_id=2, file="/docs/berg.md", dense=0.1
)
TWO_HOPS = "Where does the person who keeps the Lemal turbine work?"


class Linked(Documents):
    """Finds a passage by the first word of the query in it, else the first one."""

    def search(self, query: str, *, k: int = 8, where: Where | None = None) -> list[Passage]:
        super().search(query, k=k, where=where)
        found = [one for one in self.passages if query.split()[0] in one.text]
        return (found or self.passages[:1])[:k]


def test_a_second_search_finds_what_a_name_leads_to():
    documents = Linked(KEEPER, HALL, QUEUE)
    client = Sized(135_000_000, ["The person who keeps the Lemal turbine works in hall C-7."])
    where = {"type": "eq", "key": "year", "value": 2026}
    answer = ask(documents, TWO_HOPS, client, options=AnswerOptions(where=where))
    assert answer.text == "The person who keeps the Lemal turbine works in hall C-7. [1][2]"
    assert [one.source.passage.file for one in answer.citations] == [KEEPER.file, HALL.file]
    assert [one.quotes[0].text for one in answer.citations] == [KEEPER.text, HALL.text]
    assert [one.bridge for one in answer.rounds] == ["", "Lina Berg"]
    assert [one.query for one in answer.rounds] == [query for query, _, _ in documents.queries]
    assert {filtered["value"] for _, _, filtered in documents.queries if filtered} == {2026}
    assert len(documents.queries) == 2


def test_an_unsupported_answer_over_two_searches_quotes_the_way_to_it():
    client = Sized(135_000_000, ["Bread is baked from flour and water."])
    answer = ask(
        Linked(QUEUE, KEEPER, HALL), "The " + TWO_HOPS.lower().replace("lemal", "Lemal"), client
    )
    assert answer.text == f"{ONLY_QUOTES}\n“{KEEPER.text}” [1]\n“{HALL.text}” [2]"


def test_one_round_searches_once():
    documents = Linked(KEEPER, HALL)
    answer = ask(
        documents, TWO_HOPS, Sized(135_000_000, ["Bread."]), options=AnswerOptions(rounds=1)
    )
    assert len(documents.queries) == 1
    assert [one.passage for one in answer.sources] == [KEEPER]


def test_a_name_that_no_document_has_is_not_answered():
    client = ScriptedClient()
    near = passage("The Pegul pump is kept by Demul Makis.", dense=0.9)
    answer = ask(Documents(near), "Who keeps the Zoral pump?", client)
    assert answer.text == f"{NOT_FOUND} No document has the name Zoral."
    assert (answer.outcome, answer.declined.unknown) == ("not_found", ("Zoral",))
    assert client.requests == []
    assert ask(Documents(near), "Who keeps the Pegul pump?", ScriptedClient(["Yes."])).sources


def test_a_name_in_what_a_passage_is_called_is_known():
    near = passage("It is kept by the workshop.", file="/docs/zoral.md")
    assert ask(Documents(near), "Who keeps the Zoral pump?", ScriptedClient(["Yes."])).sources


def test_names_are_not_looked_up_if_the_model_is_to_be_asked_always():
    options = AnswerOptions(min_evidence=-1)
    answer = ask(Documents(PORT), "Does Zoral listen?", ScriptedClient(["Yes."]), options=options)
    assert answer.sources


def test_a_small_model_must_stay_with_the_names_of_the_question():
    pegul = passage("The Pegul turbine is kept by Demul Makis.", chunk_id=2, document_id=2)
    said = ["The Pegul turbine is kept by Demul Makis."]
    documents = Documents(KEEPER, pegul)
    question = "Who keeps the Lemal turbine?"
    assert ask(documents, question, Sized(135_000_000, said)).outcome == "unsupported"
    assert ask(documents, question, Sized(8_000_000_000, said)).outcome == "answered"
