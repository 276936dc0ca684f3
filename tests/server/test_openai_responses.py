"""The official client's Responses and Conversations APIs against our server."""

import inspect
import json

import httpx
import openai
import pytest
from openai.resources.conversations import Conversations
from openai.resources.conversations.items import Items
from openai.resources.responses import InputTokens, Responses
from pydantic import BaseModel

from app.server.wire.body import Body
from app.server.wire.responses_schemas import (
    CompactRequest,
    CreateConversation,
    CreateConversationItems,
    InputTokensRequest,
    ResponseRequest,
    UpdateConversation,
)
from engine.api.answer_parts import AnswerReasoning, AnswerText, CallArguments, CallBegun
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live
from tests.server.responses_api import answering

TRANSPORT = {"self", "extra_headers", "extra_query", "extra_body", "timeout"}
"""Parameters of the official client's methods that are not in the body."""

IN_THE_PATH = {"conversation_id"}
IN_THE_QUERY = {"include"}

BODIES = [
    (Responses.create, ResponseRequest, set()),
    (Responses.compact, CompactRequest, set()),
    (InputTokens.count, InputTokensRequest, set()),
    (Conversations.create, CreateConversation, set()),
    (Conversations.update, UpdateConversation, IN_THE_PATH),
    (
        Items.create,
        CreateConversationItems,
        IN_THE_PATH | IN_THE_QUERY,
    ),
]


@pytest.mark.parametrize(
    ("method", "body", "elsewhere"), BODIES, ids=lambda one: getattr(one, "__name__", "")
)
def test_every_field_of_the_official_client_is_known(method, body: type[Body], elsewhere):
    fields = set(inspect.signature(method).parameters) - TRANSPORT - elsewhere
    assert fields  # the signature was understood
    known = set(body.model_fields) | body.without_effect.keys() | body.unsupported.keys()
    assert fields - known == set()
    assert not body.without_effect.keys() & set(body.model_fields)


@pytest.fixture
def api():
    with answering("Hello ", "there.") as http, client(http) as official:
        yield official


def client(http):
    return openai.OpenAI(base_url=f"{http.base_url}/v1", api_key="none", max_retries=0)


def test_whole_and_streamed_answers_are_the_same(api):
    whole = api.responses.create(model="toy", input="hi")
    assert (whole.output_text, whole.status, whole.error) == ("Hello there.", "completed", None)
    with api.responses.stream(model="toy", input="hi") as stream:
        snapshots = [one.snapshot for one in stream if one.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert snapshots == ["Hello ", "Hello there."]
    assert final.output_text == "Hello there."
    assert final.usage.total_tokens == whole.usage.total_tokens


def test_answers_pass_the_clients_strict_validation():
    with answering("Hello ", "there.") as http:
        api = openai.OpenAI(
            base_url=f"{http.base_url}/v1", api_key="none", _strict_response_validation=True
        )
        whole = api.responses.create(model="toy", input="hi")
        assert whole.output_text == "Hello there."
        assert api.responses.retrieve(whole.id).output_text == whole.output_text
        with api.responses.stream(model="toy", input="hi") as stream:
            assert stream.get_final_response().output_text == whole.output_text
        assert api.responses.compact(model="toy", input="hi").output[0].type == "compaction"
        assert api.responses.input_items.list(whole.id).data[0].type == "message"


class City(BaseModel):
    name: str


def test_typed_output_is_parsed(monkeypatch):
    table = {"JSON": [AnswerText('{"name": "Rome"}')]}
    with answering("JSON", table=table, monkeypatch=monkeypatch) as http, client(http) as api:
        answer = api.responses.parse(model="toy", input="hi", text_format=City)
        assert answer.output_parsed == City(name="Rome")
        with api.responses.stream(model="toy", input="hi", text_format=City) as stream:
            assert stream.get_final_response().output_parsed == City(name="Rome")


TOOLS = [
    openai.pydantic_function_tool(City, name="visit")["function"] | {"type": "function"},
    {"type": "custom", "name": "patch", "description": "Changes a file."},
]
PATCH = json.dumps({"input": 'a\n"b"'})
TABLE = {
    "THINK": [AnswerReasoning("hm")],
    "CALL": [CallBegun(0, "call_a", "visit"), CallArguments(0, '{"name":'), CallArguments(0, '"Rome"}')],
    "PATCH": [CallBegun(1, "call_b", "patch"), CallArguments(1, PATCH[:17]), CallArguments(1, PATCH[17:])],
}  # fmt: skip


def test_the_helper_reads_reasoning_calls_and_custom_calls(monkeypatch):
    pieces = ("THINK", "Well.", "CALL", "PATCH")
    with (
        answering(*pieces, table=TABLE, monkeypatch=monkeypatch, context=4096) as http,
        client(http) as api,
    ):
        with api.responses.stream(model="toy", input="hi", tools=TOOLS) as stream:
            events = list(stream)
            final = stream.get_final_response()
        reasoning, message, call, custom = final.output
        assert reasoning.content[0].text == "hm"
        assert message.content[0].text == "Well."
        assert (call.name, call.call_id, call.parsed_arguments) == (
            "visit",
            "call_a",
            {"name": "Rome"},
        )
        assert (custom.type, custom.name, custom.input) == ("custom_tool_call", "patch", 'a\n"b"')
        inputs = [
            one.delta for one in events if one.type == "response.custom_tool_call_input.delta"
        ]
        assert "".join(inputs) == 'a\n"b"'
        # The answer is sent back as it came, with the results.
        results = [
            {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
            {"type": "custom_tool_call_output", "call_id": custom.call_id, "output": "done"},
        ]
        again = api.responses.create(
            model="toy",
            input=[{"role": "user", "content": "hi"}, *final.output, *results],
            tools=TOOLS,
        )
        assert again.status == "completed"
        chained = api.responses.create(
            model="toy", previous_response_id=final.id, input=results, tools=TOOLS
        )
        assert chained.usage.input_tokens == again.usage.input_tokens


@pytest.mark.parametrize("wanted", ["auto", "concise", "detailed"])
def test_reasoning_comes_as_a_summary_if_the_client_asks_for_one(monkeypatch, wanted):
    table = {"THINK": [AnswerReasoning("hm, "), AnswerReasoning("Rome")]}
    with (
        answering("THINK", "Well.", table=table, monkeypatch=monkeypatch, context=4096) as http,
        client(http) as api,
        api.responses.stream(model="toy", input="hi", reasoning={"summary": wanted}) as stream,
    ):
        kinds = [one.type.removeprefix("response.") for one in stream]
        final = stream.get_final_response()
        assert kinds[2:8] == [
            "output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
            "reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done",
        ]  # fmt: skip
        reasoning = final.output[0]
        assert [one.text for one in reasoning.summary] == ["hm, Rome"]
        assert not reasoning.content
        assert final.reasoning.summary == "detailed"  # all of it
        again = [{"role": "user", "content": "hi"}, *final.output, {"role": "user", "content": "?"}]
        assert api.responses.create(model="toy", input=again).status == "completed"


def test_the_helper_raises_for_an_answer_that_failed(api):
    with api.responses.stream(model="toy", input="y" * 600) as stream:
        last = list(stream)[-1]
        assert last.response.error.code == "context_length_exceeded"
        with pytest.raises(RuntimeError):
            stream.get_final_response()
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        api.responses.create(model="toy", input="y" * 600)


def test_the_lifecycle_of_a_response(api):
    made = api.responses.create(model="toy", input=[{"role": "user", "content": c} for c in "abc"])
    assert api.responses.retrieve(made.id).output_text == "Hello there."
    items = list(api.responses.input_items.list(made.id, limit=2, order="asc"))  # two pages
    assert [one.content[0].text for one in items] == ["a", "b", "c"]
    api.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        api.responses.retrieve(made.id)


def test_a_response_in_the_background(api):
    made = api.responses.create(model="toy", input="hi", background=True)
    wait_until(lambda: api.responses.retrieve(made.id).status not in ("queued", "in_progress"))
    made = api.responses.retrieve(made.id)
    assert made.output_text == "Hello there."
    assert api.responses.cancel(made.id).status == "completed"
    *_, last = api.responses.retrieve(made.id, stream=True, starting_after=2)
    assert last.type == "response.completed"


def test_conversations(api):
    made = api.conversations.create(
        metadata={"a": "b"}, items=[{"type": "message", "role": "user", "content": "zero"}]
    )
    assert api.conversations.retrieve(made.id).metadata == {"a": "b"}
    api.responses.create(model="toy", input="one", conversation=made.id)
    items = list(api.conversations.items.list(made.id, order="asc"))
    assert [one.content[0].text for one in items] == ["zero", "one", "Hello there."]
    assert api.conversations.items.retrieve(items[0].id, conversation_id=made.id).id == items[0].id
    api.conversations.items.delete(items[0].id, conversation_id=made.id)
    api.conversations.items.create(
        made.id, items=[{"type": "message", "role": "user", "content": "x"}]
    )
    assert api.conversations.update(made.id, metadata={"c": "d"}).metadata == {"c": "d"}
    assert api.conversations.delete(made.id).deleted is True


def test_input_tokens_and_compaction(api):
    counted = api.responses.input_tokens.count(model="toy", input="hi", instructions="Be brief.")
    made = api.responses.create(model="toy", input="hi", instructions="Be brief.")
    assert counted.input_tokens == made.usage.input_tokens
    compacted = api.responses.compact(model="toy", previous_response_id=made.id)
    (item,) = compacted.output
    assert (compacted.object, item.type) == ("response.compaction", "compaction")
    assert compacted.usage.output_tokens == len("Hello there.")
    again = api.responses.create(
        model="toy", input=[item.to_dict(), {"role": "user", "content": "x"}]
    )
    plain = api.responses.create(model="toy", input="x")
    assert again.usage.input_tokens > plain.usage.input_tokens + len("Hello there.")


def test_a_summary_leaves_out_what_does_not_fit():
    with answering("short") as http:
        items = [{"role": "user", "content": f"{number} " + "x" * 60} for number in range(9)]
        response = http.post("/v1/responses/compact", json={"model": "toy", "input": items})
        assert response.status_code == 200, response.text
        foreign = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
        body = {"model": "toy", "input": [foreign, {"role": "user", "content": "x"}]}
        ignored = http.post("/v1/responses", json=body)
        assert ignored.headers["x-pravaha-ignored-fields"] == "input[0]%28compaction%29"
        assert http.post("/v1/responses/compact", json={"model": "toy"}).status_code == 400


def test_a_search_in_files_is_an_item_and_its_citations_are_annotations(tmp_path):
    from tests.server.test_chat_retrieval import QUESTION, TRUE
    from tests.server.test_chat_retrieval import answering as answering_from_files

    with answering_from_files(tmp_path, TRUE) as served:
        tool = {"type": "file_search", "vector_store_ids": [served.store.id], "max_num_results": 2}
        fields = {
            "model": "toy", "input": QUESTION, "tools": [tool], "temperature": 0,
            "max_output_tokens": served.length,
        }  # fmt: skip
        answer = served.api.responses.create(**fields, include=["file_search_call.results"])
        search, message = answer.output
        assert (search.type, search.status) == ("file_search_call", "completed")
        assert search.queries[0]
        assert search.results[0].filename == "heron.md"
        (cited,) = message.content[0].annotations
        assert (cited.type, cited.filename, cited.index) == ("file_citation", "heron.md", 0)
        with served.api.responses.stream(**fields) as stream:
            events = list(stream)
        kinds = [one.type.removeprefix("response.") for one in events]
        final = events[-1].response  # incomplete: the answer is as long as it may be
        assert kinds[2:8] == [
            "output_item.added", "file_search_call.in_progress", "file_search_call.searching",
            "file_search_call.completed", "output_item.done", "output_item.added",
        ]  # fmt: skip
        assert "output_text.annotation.added" in kinds
        assert final.output[0].results is None
        assert final.output[1].content[0].annotations == [cited]
        # The results of calls are no question to search for.
        results = [{"type": "function_call_output", "call_id": "c", "output": "x"}]
        chained = served.api.responses.create(
            **fields | {"input": results}, previous_response_id=final.id
        )
        assert [one.type for one in chained.output] == ["message"]
        missing = {"type": "file_search", "vector_store_ids": ["vs_0"]}
        with pytest.raises(openai.NotFoundError):
            served.api.responses.create(**fields | {"tools": [missing]})
        with pytest.raises(openai.BadRequestError) as error:
            served.api.responses.create(**fields | {"tools": [{"type": "file_search"}]})
        assert error.value.param == "tools.vector_store_ids"


async def test_clients_that_leave_streams_leave_nothing_behind():
    with byte_engine(step_s=0.002, max_num_seqs=8) as engine, live(engine) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
            for number in range(40):
                body = {
                    "model": "toy", "input": f"{number}", "stream": True, "ignore_eos": True,
                    "max_output_tokens": 200,
                }  # fmt: skip
                async with http.stream("POST", "/v1/responses", json=body) as response:
                    read = 0
                    async for text in response.aiter_text():
                        read += text.count("\n\n")
                        if read > number % 13:
                            break
        wait_until(lambda: is_quiet(engine) and not server.context.drain.active)
