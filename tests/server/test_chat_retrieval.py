"""The field `retrieval` of chats: passages before the question, citations with their places."""

from contextlib import contextmanager
from functools import partial

import openai
import pytest

from app.server.calls import chat_sources
from engine.api import snapshot
from engine.retrieval.answering.fitting import fit_sources
from tests.fakes.gated_embedder import GatedEmbedder
from tests.server.files_server import files_server

HERON = (
    "# Herons\n\nThe grey heron stands in shallow water near the river bank at dawn. "
    "It waits a long time for small fish.\n"
)
OWL = "# Owls\n\nThe barn owl hunts mice in the open fields at night.\n"
TRUE = "The grey heron stands in shallow water near the river bank at dawn [1]."
FALSE = "The barn owl eats apples in seven gardens every winter [1]."
ANSWER = f"{TRUE} {FALSE}"
QUESTION = "Where does the grey heron stand at dawn?"


@contextmanager
def answering(folder, answer, **options):
    """A server that answers everything with `answer`, and a vector store of two files."""
    force = dict(enumerate(answer.encode()))
    options = {"engine_options": {"context": 4096}} | options
    with files_server(folder, force=force, **options) as served:
        served.length = len(answer.encode())
        served.store = served.store_with({"heron.md": HERON.encode(), "owl.md": OWL.encode()})
        yield served


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with answering(tmp_path_factory.mktemp("chat"), ANSWER) as running:
        yield running


def chat(served, question=QUESTION, *, retrieval=None, messages=None, extra=None, **fields):
    found = {"vector_store_ids": [served.store.id], "max_num_results": 2} | (retrieval or {})
    return served.api.chat.completions.create(
        model="toy",
        messages=messages or [{"role": "user", "content": question}],
        temperature=0,
        extra_body={"retrieval": found} | (extra or {}),
        **{"max_tokens": served.length} | fields,
    )


def prompts_of(served, call):
    """The prompts that the engine reads during a call."""
    prompts = []
    submit = served.server.context.engine.submit_all
    served.server.context.engine.submit_all = lambda requests: (
        prompts.extend(requests) or submit(requests)
    )
    try:
        call()
    finally:
        del served.server.context.engine.submit_all
    return [bytes(token for token in one.prompt_ids if token < 256).decode() for one in prompts]


def citations(annotations):
    assert all(one["type"] == "file_citation" for one in annotations)
    return [one["file_citation"] for one in annotations]


def plain(annotations):
    return [one.to_dict() if hasattr(one, "to_dict") else one for one in annotations]


def test_a_supported_citation_names_its_file_and_place(served):
    answer = chat(served)
    (choice,) = answer.choices
    text = choice.message.content
    assert text.startswith(TRUE)
    (cited,) = citations(plain(choice.message.annotations))
    assert text[cited["start_index"] : cited["end_index"]] == "[1]"
    assert cited["filename"] == "heron.md"
    assert served.api.files.retrieve(cited["file_id"]).filename == "heron.md"
    assert cited["vector_store_id"] == served.store.id
    assert cited["n"] == 1
    data = served.api.files.content(cited["file_id"]).read()
    (quote,) = cited["quotes"]
    assert "grey heron stands in shallow water" in quote["text"]
    assert data[quote["start"] : quote["end"]].decode() == quote["text"]
    assert cited["start"] <= quote["start"] < quote["end"] <= cited["end"]


def test_a_citation_without_support_is_taken_out_and_reported(served, monkeypatch):
    monkeypatch.setattr(snapshot, "SMALL_MODEL_PARAMETERS", 0)
    (choice,) = chat(served).choices
    assert "seven gardens every winter [unsupported]" in choice.message.content
    assert choice.retrieval["supported"] is True
    (dropped,) = choice.retrieval["dropped_citations"]
    assert (dropped["n"], dropped["exists"]) == (1, True)
    assert "apples" in dropped["sentence"]


def test_of_a_small_model_only_supported_sentences_are_sent(served):
    (choice,) = chat(served).choices
    assert choice.message.content == (
        "The grey heron stands in shallow water near the river bank at dawn [1]."
    )


def test_an_unsupported_answer_is_followed_by_the_closest_sentences(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "SMALL_MODEL_PARAMETERS", 0)
    said = "Penguins buy seven red bicycles in Oslo."
    with answering(tmp_path, said) as served:
        (choice,) = chat(served).choices
        text = choice.message.content
        remark = "No passage supports this answer. The closest ones say:"
        assert text.startswith(f"{said}\n\n{remark}\n“")
        assert choice.retrieval["supported"] is False
        cited = citations(plain(choice.message.annotations))
        assert cited[0]["filename"] == "heron.md"
        assert text[cited[0]["start_index"] : cited[0]["end_index"]] == "[1]"
        (quote,) = cited[0]["quotes"]
        assert "grey heron" in quote["text"]
        chunks = list(chat(served, stream=True))
        deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
        assert "".join(one.content or "" for one in deltas) == text


def test_a_stream_has_the_same_text_annotations_and_passages(served):
    whole = chat(served)
    chunks = list(chat(served, stream=True))
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(one.content or "" for one in deltas) == whole.choices[0].message.content
    (annotated,) = [one for one in deltas if getattr(one, "annotations", None)]
    assert plain(annotated.annotations) == plain(whole.choices[0].message.annotations)
    (reported,) = [
        choice.retrieval
        for chunk in chunks
        for choice in chunk.choices
        if hasattr(choice, "retrieval")
    ]
    assert reported == whole.choices[0].retrieval
    assert chunks[0].retrieval == whole.retrieval
    assert not any(hasattr(chunk, "retrieval") for chunk in chunks[1:])
    assert chunks[-1].choices[0].finish_reason == "length"


def test_every_choice_of_a_stream_is_annotated(served):
    marks = {}
    for chunk in chat(served, stream=True, n=2):
        for choice in chunk.choices:
            for one in plain(getattr(choice.delta, "annotations", None) or []):
                marks[choice.index] = one["file_citation"]["filename"]
    assert marks == {0: "heron.md", 1: "heron.md"}


def test_the_response_lists_what_the_model_read(served):
    answer = chat(served)
    assert answer.retrieval["query"] == QUESTION
    passages = answer.retrieval["passages"]
    assert [one["n"] for one in passages] == [1, 2]
    assert passages[0]["filename"] == "heron.md"
    assert HERON.encode()[passages[0]["start"] : passages[0]["end"]].decode() == passages[0]["text"]
    (prompt,) = prompts_of(served, lambda: chat(served))
    for one in passages:
        assert f"[{one['n']}] {one['filename']}" in prompt
    assert "> It waits" in prompt or "It waits a long time" in prompt
    assert prompt.index("shallow water") < prompt.index(f"Question: {QUESTION}")
    assert str(served.folder) not in prompt
    assert str(served.folder) not in answer.model_dump_json()


def test_the_conversation_and_its_system_message_stay(served):
    messages = [
        {"role": "system", "content": "Talk like a pirate."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Ahoy"},
        {"role": "user", "content": QUESTION},
    ]
    (prompt,) = prompts_of(served, lambda: chat(served, messages=messages))
    order = [
        "Talk like a pirate.",
        "using the passages",
        "Hello",
        "Ahoy",
        "shallow water",
        "Question:",
    ]
    places = [prompt.index(one) for one in order]
    assert places == sorted(places)


def test_a_follow_up_is_searched_with_the_question_before_it(served):
    messages = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "In shallow water."},
        {"role": "user", "content": "And what does it wait for?"},
    ]
    answer = chat(served, messages=messages)
    assert answer.retrieval["query"] == f"{QUESTION} And what does it wait for?"
    alone = chat(served, messages=messages, retrieval={"rewrite_query": False})
    assert alone.retrieval["query"] == "And what does it wait for?"


def test_a_large_model_reads_the_section_around_a_passage(tmp_path, monkeypatch):
    # The toy tokenizer counts bytes, of which a section may have more than tokens.
    monkeypatch.setattr(chat_sources, "fit_sources", partial(fit_sources, section_tokens=4096))
    options = {"engine_options": {"context": 8192, "parameters": 2_000_000_000}}
    with answering(tmp_path, "Yes.", **options) as served:
        lines = "".join(f"Where the grey heron stands at dawn, {i}.\n" for i in range(30))
        text = f"# Herons\n\n{lines}\n# Owls\n\nNothing here.\n"
        store = served.store_with({"long.md": text.encode()})
        answer = chat(served, retrieval={"vector_store_ids": [store.id], "max_num_results": 1})
        (passage,) = answer.retrieval["passages"]
        found = served.api.vector_stores.search(store.id, query=QUESTION, max_num_results=1)
        assert passage["chunk_id"] == found.data[0].chunk_id
        assert passage["end"] - passage["start"] > found.data[0].end - found.data[0].start
        assert text.encode()[passage["start"] : passage["end"]].decode() == passage["text"]


def test_filters_and_an_own_query_choose_the_passages(served):
    files = served.api.vector_stores.files.list(served.store.id)
    owl = next(one.id for one in files if served.api.files.retrieve(one.id).filename == "owl.md")
    only = {"type": "eq", "key": "file", "value": owl}
    answer = chat(served, retrieval={"filters": only, "query": "barn owl mice"})
    assert [one["filename"] for one in answer.retrieval["passages"]] == ["owl.md"]
    assert answer.retrieval["query"] == "barn owl mice"


def test_several_stores_are_searched_together(served):
    other = served.store_with({"wren.md": b"The wren stands in the hedge at dawn.\n"})
    answer = chat(
        served,
        retrieval={"vector_store_ids": [served.store.id, other.id], "max_num_results": 4},
    )
    stores = {one["filename"]: one["vector_store_id"] for one in answer.retrieval["passages"]}
    assert stores["wren.md"] == other.id
    assert stores["heron.md"] == served.store.id
    assert [one["n"] for one in answer.retrieval["passages"]] == [1, 2, 3]


@pytest.mark.parametrize(
    "retrieval",
    [
        {"filters": {"type": "eq", "key": "lang", "value": "none"}},
        {"query": "quantum chromodynamics lattice"},
        {"ranking_options": {"score_threshold": 0.99}},
    ],
    ids=["filtered", "far", "threshold"],
)
def test_what_is_not_in_the_files_is_said_not_to_be_there(served, retrieval):
    prompts = prompts_of(served, lambda: chat(served, retrieval=retrieval))
    assert prompts == []  # the model is not asked
    answer = chat(served, retrieval=retrieval, n=2)
    assert answer.retrieval["passages"] == []
    for choice in answer.choices:
        assert choice.message.content == "The documents do not answer this."
        assert choice.message.annotations == []
        assert choice.retrieval == {"supported": False, "dropped_citations": []}
        assert choice.finish_reason == "stop"
    assert answer.usage.total_tokens == 0
    usage = {"include_usage": True}
    chunks = list(chat(served, retrieval=retrieval, stream=True, n=2, stream_options=usage))
    texts = {0: "", 1: ""}
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert set(texts.values()) == {"The documents do not answer this."}
    assert chunks[0].retrieval == answer.retrieval
    assert chunks[-1].usage.total_tokens == 0


def test_a_name_leads_to_another_file_and_the_rounds_are_reported(tmp_path):
    said = "The person who keeps the Velmora lighthouse works in hall C-7."
    files = {
        "keeper.md": b"Lina Berg keeps the Velmora lighthouse in order.\n",
        "berg.md": b"Every morning Lina Berg works in hall C-7.\n",
    } | {f"more{n}.md": b"The Velmora lighthouse is %d years old.\n" % n for n in range(3)}
    with answering(tmp_path, said) as served:
        store = served.store_with(files)
        question = "Where does the person who keeps the Velmora lighthouse work?"
        answer = chat(served, question, retrieval={"vector_store_ids": [store.id]})
        first, second = answer.retrieval["rounds"]
        assert (first["query"], first["bridge"]) == (question, None)
        assert second["bridge"] == "Lina Berg"
        assert second["query"].startswith("Lina Berg ")
        read = [one["filename"] for one in answer.retrieval["passages"]]
        assert read[:2] == ["keeper.md", "berg.md"]
        (choice,) = answer.choices
        assert choice.message.content == f"{said} [1][2]"
        cited = {one["filename"] for one in citations(plain(choice.message.annotations))}
        assert cited == {"keeper.md", "berg.md"}


def test_a_name_that_no_file_has_is_not_answered(served):
    question = "Where does the Zoral heron stand at dawn?"
    prompts = prompts_of(served, lambda: chat(served, question))
    assert prompts == []
    assert chat(served, question).choices[0].message.content == "The documents do not answer this."
    assert chat(served, question, retrieval={"query": QUESTION}).retrieval["passages"]


def test_the_rule_that_declined_is_reported_and_the_evidence_can_be_lifted(served):
    named = chat(served, "Where does the Zoral heron stand at dawn?").retrieval["declined"]
    assert (named["rule"], named["unknown_names"]) == ("names", ["Zoral"])
    far = {"query": "quantum chromodynamics lattice"}
    declined = chat(served, retrieval=far).retrieval["declined"]
    assert declined["rule"] == "evidence"
    assert declined["evidence"] < declined["least"] == 0.44
    lifted = chat(served, retrieval=far | {"min_evidence": -1}).retrieval
    assert lifted["passages"]
    assert "declined" not in lifted
    with pytest.raises(openai.BadRequestError):
        chat(served, retrieval={"min_evidence": 2})


def test_the_grammar_allows_existing_numbers_only(tmp_path):
    with answering(tmp_path, "The heron stands in water [7] at dawn.") as served:
        whole = chat(served, extra={"return_token_ids": True})
        generated = bytes(whole.choices[0].token_ids).decode(errors="replace")
        assert "[7]" not in generated  # the engine was forced towards it


def test_a_grammar_of_the_request_stays_in_force(tmp_path):
    with answering(tmp_path, "yes") as served:
        answer = chat(served, extra={"guided_choice": ["no", "never"]}, max_tokens=9)
        assert answer.choices[0].message.content in ("no", "never")


def test_who_asks_for_token_ids_gets_the_text_of_the_ids(served):
    (choice,) = chat(served, extra={"return_token_ids": True}).choices
    assert choice.message.content == bytes(choice.token_ids).decode() == ANSWER
    (cited,) = citations(plain(choice.message.annotations))
    assert cited["end_index"] < ANSWER.index("The barn owl")
    assert len(choice.retrieval["dropped_citations"]) == 1


def test_passages_that_do_not_fit_are_left_out(tmp_path):
    with answering(tmp_path, "Yes.") as served:
        long = b"".join(b"Where the grey heron stands at dawn, by %d. " % i for i in range(150))
        store = served.store_with({"long.md": long})
        both = {"vector_store_ids": [store.id], "max_num_results": 50}
        found = served.api.vector_stores.search(store.id, query=QUESTION, max_num_results=50)
        answer = chat(served, retrieval=both)
        assert 0 < len(answer.retrieval["passages"]) < len(found.data)
        ids = [one["chunk_id"] for one in answer.retrieval["passages"]]
        ranking = [one.chunk_id for one in found.data]
        assert ids[0] == ranking[0]
        assert ids == [one for one in ranking if one in ids]
        again = chat(served, retrieval=both | {"previous_chunk_ids": [ids[1], ids[0]]})
        order = [one["chunk_id"] for one in again.retrieval["passages"]]
        assert order[:2] == [ids[1], ids[0]]  # the earlier prompt's order, which is cached


def test_a_long_question_is_searched_by_its_end(served):
    text = HERON.replace("\n", " ").removeprefix("# ")
    question = "Some words of no meaning. " * 12 + text * 14 + QUESTION
    answer = chat(served, question)
    query = answer.retrieval["query"]
    assert query.endswith(QUESTION)
    assert question.endswith(query)
    assert 1000 < len(query) < len(question)
    assert answer.retrieval["passages"][0]["filename"] == "heron.md"


def test_a_chat_without_the_field_is_as_before(served):
    answer = served.api.chat.completions.create(
        model="toy", messages=[{"role": "user", "content": "hi"}], max_tokens=5, temperature=0
    )
    assert answer.choices[0].message.annotations == []
    assert not hasattr(answer, "retrieval")
    assert not hasattr(answer.choices[0], "retrieval")


@pytest.mark.parametrize(
    ("retrieval", "status", "param"),
    [
        ({"vector_store_ids": []}, 400, "retrieval.vector_store_ids"),
        ({"vector_store_ids": ["vs_gone"]}, 404, None),
        ({"max_num_results": 0}, 400, "retrieval.max_num_results"),
        ({"query": ""}, 400, "retrieval.query"),
        ({"filters": {"type": "like"}}, 400, "filters"),
        ({"ranking_options": {"ranker": "mine"}}, 400, "ranking_options.ranker"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(served, retrieval, status, param):
    with pytest.raises(openai.APIStatusError) as caught:
        chat(served, retrieval=retrieval)
    assert caught.value.status_code == status
    assert caught.value.param == param


def test_the_last_message_must_be_a_question(served):
    for last in ({"role": "assistant", "content": "Well"}, {"role": "user", "content": " "}):
        messages = [{"role": "user", "content": QUESTION}, last]
        with pytest.raises(openai.BadRequestError) as caught:
            chat(served, messages=messages)
        assert caught.value.param == "messages"


def test_plain_completions_refuse_the_field(served):
    with pytest.raises(openai.BadRequestError) as caught:
        served.api.completions.create(
            model="toy", prompt="x", extra_body={"retrieval": {"vector_store_ids": ["a"]}}
        )
    assert caught.value.param == "retrieval"


def test_without_the_embedding_model_the_error_names_the_command(tmp_path):
    with files_server(tmp_path, embedder=GatedEmbedder(installed=False)) as served:
        answer = served.http.post(
            "/v1/chat/completions",
            json={
                "model": "toy",
                "messages": [{"role": "user", "content": "hi"}],
                "retrieval": {"vector_store_ids": ["vs_x"]},
            },
        )
        assert answer.status_code == 503
        assert "`pravaha models add minilm`" in answer.json()["error"]["message"]


def test_a_call_of_a_tool_is_not_checked_for_citations(tmp_path):
    tool = {"type": "function", "function": {"name": "get_time"}}
    with answering(tmp_path, f'{TRUE} {{"name": "get_time", "arguments": {{"a": 1}}}}') as served:
        (choice,) = chat(served, tools=[tool]).choices
    assert choice.message.tool_calls[0].function.arguments == '{"a": 1}'
    assert choice.message.content.startswith("The grey heron")
    assert "get_time" not in choice.message.content
