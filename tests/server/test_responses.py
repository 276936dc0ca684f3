"""`POST /v1/responses`: what the model reads, and the forms of the answer."""

import json
import threading

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.server.calls import chat_turn
from app.server.calls.responses_request import OwnNames
from app.server.calls.responses_tools import read_tools
from engine.api.answer_parts import AnswerReasoning, AnswerText, CallArguments, CallBegun
from engine.api.request import FinishReason
from tests.fakes.tool_template import TOOL_TEMPLATE
from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.responses_api import BODY, URL, answering, kinds, parse, prompt_of, stream
from tests.server.scripted_engine import batch, words

FUNCTION = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
CALL = {
    "think": [AnswerReasoning("Rome, "), AnswerReasoning("hm.")],
    "text": [AnswerText("I look.")],
    "call": [CallBegun(0, "call_a", "weather"), CallArguments(0, '{"city": ')],
    "more": [CallArguments(0, '"Rome"}')],
    "second": [CallBegun(1, "call_b", "weather"), CallArguments(1, "{}")],
}


@pytest.fixture(scope="module")
def plain():
    with answering("Hello ", "there.", template=TOOL_TEMPLATE) as http:
        yield http


def ask(http, expected=200, **fields):
    response = http.post(URL, json=BODY | fields)
    assert response.status_code == expected, response.text
    return response.json()


def test_a_text_is_answered_by_a_message(plain):
    answer = ask(plain)
    (item,) = answer["output"]
    assert (answer["object"], answer["status"], answer["error"]) == ("response", "completed", None)
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    assert item["content"] == [
        {"type": "output_text", "text": "Hello there.", "annotations": [], "logprobs": []}
    ]
    usage = answer["usage"]
    assert usage["output_tokens"] == len("Hello there.")
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    written = {"cached_tokens": 0, "cache_write_tokens": usage["input_tokens"]}
    assert usage["input_tokens_details"] == written
    assert usage["output_tokens_details"] == {"reasoning_tokens": 0}
    assert answer["created_at"] <= answer["completed_at"]


def test_the_events_of_a_text_come_in_their_order(plain):
    events = stream(plain)
    assert kinds(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    created, final = events[0]["response"], events[-1]["response"]
    assert (created["status"], created["output"], created["usage"]) == ("in_progress", [], None)
    assert created.keys() == final.keys()
    deltas = [one for one in events if one["type"] == "response.output_text.delta"]
    assert "".join(one["delta"] for one in deltas) == "Hello there."
    assert final["output"] == [events[-2]["item"]]
    assert "[DONE]" not in json.dumps(events)


def test_every_event_of_an_item_has_its_id_and_places(monkeypatch):
    with answering(*CALL, table=CALL, monkeypatch=monkeypatch, context=4096) as http:
        events = stream(http, tools=[FUNCTION])
    ids = {one["response"]["id"] for one in events if "response" in one}
    assert len(ids) == 1
    final = events[-1]["response"]["output"]
    assert [one["type"] for one in final] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    for index, item in enumerate(final):
        mine = [one for one in events if one.get("output_index") == index]
        assert {one.get("item_id") or one["item"]["id"] for one in mine} == {item["id"]}
        added, done = mine[0], mine[-1]
        assert (added["type"], done["type"]) == (
            "response.output_item.added",
            "response.output_item.done",
        )
        assert done["item"] == item
        assert added["item"]["status"] == "in_progress"
        assert added["item"]["type"] == item["type"]
        assert added["item"].get("call_id") == item.get("call_id")
        assert all(
            "content_index" in one for one in mine if "text" in one["type"] or "part" in one["type"]
        )


def test_reasoning_and_calls_are_items_of_their_own(monkeypatch):
    with answering(*CALL, table=CALL, monkeypatch=monkeypatch, context=4096) as http:
        streamed = stream(http, tools=[FUNCTION])
        whole = ask(http, tools=[FUNCTION])
    assert kinds(streamed) == [
        "created", "in_progress",
        "output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done",
        "content_part.done", "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.done",
        "content_part.done", "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done",
        "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done",
        "output_item.done", "completed",
    ]  # fmt: skip
    reasoning, message, first, second = whole["output"]
    assert reasoning["content"] == [{"type": "reasoning_text", "text": "Rome, hm."}]
    assert reasoning["summary"] == []
    assert message["content"][0]["text"] == "I look."
    assert (first["call_id"], first["name"], first["arguments"]) == (
        "call_a", "weather", '{"city": "Rome"}'
    )  # fmt: skip
    assert (second["call_id"], second["arguments"]) == ("call_b", "{}")
    without_ids = [{**one, "id": 0} for one in whole["output"]]
    assert without_ids == [{**one, "id": 0} for one in streamed[-1]["response"]["output"]]


def test_an_answer_that_is_cut_is_incomplete(monkeypatch):
    table = {"a": [CallBegun(0, "c", "weather")], "b": [CallArguments(0, '{"ci')]}
    script = words("a", "b", finish=FinishReason.LENGTH)
    with answering(script=script, table=table, monkeypatch=monkeypatch, context=4096) as http:
        events = stream(http, tools=[FUNCTION])
        whole = ask(http, tools=[FUNCTION], max_output_tokens=2)
    assert events[-1]["type"] == "response.incomplete"
    for response in (events[-1]["response"], whole):
        assert response["status"] == "incomplete"
        assert response["incomplete_details"] == {"reason": "max_output_tokens"}
        assert response["output"][0]["status"] == "incomplete"
        assert response["output"][0]["arguments"] == '{"ci'


def test_an_answer_without_a_word_is_an_empty_message():
    with answering("") as http:
        assert ask(http)["output"][0]["content"][0]["text"] == ""


def test_a_failure_after_the_first_byte_ends_the_stream_as_failed():
    def failing(request):
        return [batch(request, "Hel"), batch(request, "", FinishReason.ERROR, "It broke.")]

    with answering(script=failing) as http:
        events = stream(http)
        assert http.post(URL, json=BODY).status_code == 500
    assert kinds(events)[-1] == "failed"
    final = events[-1]["response"]
    assert final["status"] == "failed"
    assert final["error"] == {"code": "server_error", "message": "It broke."}
    assert final["output"][0]["content"][0]["text"] == "Hel"
    assert final["id"] == events[0]["response"]["id"]


def test_a_prompt_that_is_too_long_fails_in_a_stream_and_is_refused_otherwise(plain):
    text = "word " * 200
    events = stream(plain, input=text)
    assert kinds(events) == ["created", "in_progress", "failed"]
    error = events[-1]["response"]["error"]
    assert error["code"] == "context_length_exceeded"
    refused = ask(plain, 400, input=text)["error"]
    assert (refused["code"], refused["param"]) == ("context_length_exceeded", "input")
    assert refused["message"] == error["message"]


def test_truncation_leaves_out_the_oldest_messages(plain):
    turns = [
        {"role": "developer", "content": "Be brief."},
        *({"role": "user", "content": f"old {number} " + "x" * 40} for number in range(12)),
        {"role": "user", "content": "the newest question"},
    ]
    ask(plain, 400, input=turns)
    ask(plain, input=turns, truncation="auto")
    prompt = prompt_of(plain)
    assert "Be brief." in prompt
    assert "the newest question" in prompt
    assert "old 0 " not in prompt
    assert "old 11 " in prompt


def test_truncation_reads_images_and_searches_once(plain, monkeypatch):
    begun = []

    async def counted(request, context, body, *others):
        begun.append(len(body.messages))

    monkeypatch.setattr(chat_turn, "find_sources", counted)
    turns = [{"role": "user", "content": "old " + "x" * 40} for _ in range(40)]
    ask(plain, input=turns, truncation="auto")
    assert len(begun) == 1
    assert 1 < begun[0] < 40


def test_items_of_an_agents_history_become_messages(plain):
    history = [
        {"type": "message", "id": "msg_1", "role": "developer",
         "content": [{"type": "input_text", "text": "Rules"}, {"type": "input_text", "text": "!"}]},
        {"role": "user", "content": "weather?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None,
         "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "phase": "commentary", "status": "completed", "id": "m",
         "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather",
         "arguments": '{"city": "Rome"}', "status": "completed"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "a\n\"b\""},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        {"type": "custom_tool_call_output", "call_id": "c2",
         "output": [{"type": "input_text", "text": "done"}]},
        {"role": "user", "content": "thanks"},
    ]  # fmt: skip
    response = plain.post(URL, json=BODY | {"instructions": "Obey.", "input": history})
    assert response.status_code == 200, response.text
    assert response.headers["x-pravaha-ignored-fields"] == "input[6]%28web_search_call%29"
    assert prompt_of(plain) == (
        "system\nObey.\nsystem\nRules!\nuser\nweather?\nassistant\nI look.\n"
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "patch", "arguments": {"input": "a\\n\\"b\\""}}\n</tool_call>\n'
        "user\n<tool_response>\nsunny\n</tool_response>\n<tool_response>\ndone\n</tool_response>\n"
        "user\nthanks\nassistant\n"
    )


def test_a_last_message_of_the_assistant_is_not_continued(plain):
    ask(plain, input=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    assert prompt_of(plain) == "user\na\nassistant\nb\nassistant\n"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": None}, "input"),
        ({"input": [{}]}, "input[0]"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input[0].content[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
         "input[0].content[0].image_url"),
        ({"input": [{"type": "function_call", "name": "f", "call_id": "c"}]}, "input[0].arguments"),
        ({"input": [{"role": "user", "content": "x"}, {"type": "function_call_output", "output": "x"}]},
         "input[1].call_id"),
        ({"temperature": 1000}, "temperature"),
        ({"top_p": "high"}, "top_p"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"reasoning": {"effort": "x" * 99}}, "reasoning.effort"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"truncation": "some"}, "truncation"),
        ({"input": [{"type": ["message"]}]}, "input[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [FUNCTION, FUNCTION]}, "tools[1]"),
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "g"}}, "tool_choice"),
        ({"tools": [FUNCTION], "tool_choice": {"type": "allowed_tools", "tools": [{"name": "g"}]}},
         "tool_choice.tools[0]"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_field(plain, fields, param):
    error = ask(plain, 400, **fields)["error"]
    assert error["param"] == param
    assert error["message"].count("`messages") == 0


def test_a_model_that_is_not_there_is_a_404(plain):
    assert ask(plain, 404, model="gpt-9", stream=True)["error"]["code"] == "model_not_found"


def test_what_agents_send_beside_the_question_is_no_reason_to_refuse(plain):
    """As Codex sends it, with members of its own."""
    response = plain.post(
        URL,
        json=BODY
        | {
            "include": ["reasoning.encrypted_content"],
            "store": False,
            "prompt_cache_key": "k",
            "client_metadata": {"session_id": "s"},
            "reasoning": {"effort": "none", "summary": "auto", "context": "all"},
            "text": {"verbosity": "low"},
            "service_tier": "auto",
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "tools": [
                {"type": "web_search", "external_web_access": False},
                {"type": "image_generation"},
                {"type": "computer_use_preview"},
                {"type": "tool_search", "execution": "client"},
                {"type": "from the future", "name": 3},
            ],
            "surprise": 1,
        },
    )
    assert response.status_code == 200, response.text
    assert response.headers["x-pravaha-ignored-fields"] == "surprise"
    skipped = response.headers["x-pravaha-skipped-tools"].split(",")
    assert skipped == [
        "web_search", "image_generation", "computer_use_preview", "tool_search", "from%20the%20future"
    ]  # fmt: skip


def test_logprobs_come_with_the_text(plain):
    answer = ask(plain, top_logprobs=2)
    entries = answer["output"][0]["content"][0]["logprobs"]
    assert "".join(one["token"] for one in entries) == "Hello there."
    events = stream(plain, include=["message.output_text.logprobs"])
    deltas = [one for one in events if one["type"] == "response.output_text.delta"]
    assert [len(one["logprobs"]) for one in deltas] == [len("Hello "), len("there.")]
    done = next(one for one in events if one["type"] == "response.output_text.done")
    assert done["logprobs"] == entries


def test_a_schema_constrains_the_text(client):
    schema = {
        "type": "object",
        "properties": {"a": {"enum": [1]}},
        "required": ["a"],
        "additionalProperties": False,  # the engine samples at random
    }
    form = {"type": "json_schema", "name": "has spaces", "schema": schema, "strict": True}
    answer = ask(client, text={"format": form})
    assert json.loads(answer["output"][0]["content"][0]["text"]) == {"a": 1}
    assert answer["text"]["format"]["schema"] == schema
    answer = ask(client, text={"format": {"type": "json_object"}}, max_output_tokens=1)
    assert answer["output"][0]["content"][0]["text"] == "{"


MEMBERS = st.sampled_from([
    "type", "role", "content", "text", "name", "call_id", "arguments", "input", "output", "tools", "id",
    "summary", "format", "syntax", "definition", "namespace", "mode", "function", "image_url",
    "vector_store_ids", "encrypted_content",
])  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "auto", "user"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=5),
    max_leaves=12,
)
TYPES = st.sampled_from([
    "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
    "reasoning", "item_reference", "compaction", "file_search", "function", "custom", "namespace",
    "grammar", "allowed_tools", "input_text", "input_image", "json_schema", "web_search",
])  # fmt: skip
ITEMS = st.lists(
    st.builds(lambda kind, rest: {**rest, "type": kind}, TYPES, st.dictionaries(MEMBERS, JSON)),
    max_size=4,
)


@given(items=ITEMS, tools=ITEMS, choice=JSON, form=JSON)
@settings(max_examples=60)
def test_no_body_breaks_the_server(plain, items, tools, choice, form):
    body = {"input": items, "tools": tools, "tool_choice": choice, "text": {"format": form}}
    for path in (URL, f"{URL}/input_tokens"):
        for fields in ({"input": items}, {"tools": tools, "tool_choice": choice}, body):
            response = plain.post(path, json=BODY | fields)
            assert response.status_code in (200, 400, 404), response.text
            if response.status_code != 200:
                assert response.json()["error"]["message"]


def test_the_response_is_created_before_its_prompt_is_read():
    gate = threading.Semaphore(0)
    with (
        byte_engine(gate=gate) as engine,
        live(engine, keep_alive_s=0.05) as server,
        httpx.Client(base_url=server.url, timeout=30) as http,
        http.stream("POST", URL, json=BODY | {"stream": True, "max_output_tokens": 2}) as response,
    ):
        text = ""
        chunks = response.iter_text()
        while text.count(": keep-alive") < 2:
            text += next(chunks)
        assert kinds(parse(text)) == ["created", "in_progress"]
        gate.release(1000)
        text += "".join(chunks)
    assert kinds(parse(text))[-1] in ("incomplete", "completed")


def test_errors_of_a_tool_name_its_own_place(plain):
    space = {
        "type": "namespace",
        "name": "n",
        "tools": [FUNCTION, {**FUNCTION, "name": "g", "strict": 3}],
    }
    tools = read_tools([{"type": "web_search"}, FUNCTION, space])
    names = OwnNames((), tools.paths)
    assert names.of("tools[2].function.name") == "tools[2].tools[1].name"
    assert names.of("tools[0].function.parameters") == "tools[1].parameters"
