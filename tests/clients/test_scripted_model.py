"""The scripted model of `clients/`: its answers stand in the conversation."""

import json

import httpx
import pytest

from clients.agent_task import call, with_answers
from clients.scripted_model import OTHERWISE, scripted_engine
from tests.server.live import live

ANSWERS = ("First.", call("shell", command="ls\n"), 'Ünd "quoted".')
TOOLS = [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}]


@pytest.fixture(scope="module")
def http():
    engine = scripted_engine()
    engine.start()
    engine.wait_ready(60)
    try:
        with live(engine) as server, httpx.Client(base_url=server.url, timeout=60) as client:
            yield client
    finally:
        engine.shutdown()


def answer(http, messages, **more):
    body = {"model": "scripted", "messages": messages, "tools": TOOLS} | more
    return http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]


def test_each_turn_has_the_next_answer(http):
    messages = [{"role": "user", "content": with_answers("Do it.", *ANSWERS)}]
    first = answer(http, messages)
    assert first["content"] == "First."
    messages += [first, {"role": "user", "content": "Go on."}]
    second = answer(http, messages, temperature=1.5)
    (called,) = second["tool_calls"]
    assert called["function"]["name"] == "shell"
    assert json.loads(called["function"]["arguments"]) == {"command": "ls\n"}
    messages += [second, {"role": "tool", "tool_call_id": called["id"], "content": "calc.py"}]
    third = answer(http, messages)
    assert third["content"] == 'Ünd "quoted".'
    assert (
        answer(http, [*messages, third, {"role": "user", "content": "?"}])["content"] == OTHERWISE
    )


def test_a_later_list_begins_anew(http):
    messages = [
        {"role": "user", "content": with_answers("One.", "a", "b")},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": with_answers("Two.", "c")},
    ]
    assert answer(http, messages)["content"] == "c"


def test_what_a_grammar_asks_for_comes_to_an_end(http):
    schema = {
        "type": "object",
        "properties": {
            "names": {"type": "array", "items": {"type": "string"}},
            "n": {"type": "integer"},
        },
        "required": ["names", "n"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    found = answer(http, [{"role": "user", "content": "hi"}], response_format=form, max_tokens=500)
    assert json.loads(found["content"]).keys() == {"names", "n"}


def test_it_answers_the_other_faces(http):
    asked = {"role": "user", "content": with_answers("Do it.", ANSWERS[1])}
    tools = [{"name": "shell", "input_schema": {"type": "object"}}]
    body = {"model": "scripted", "messages": [asked], "tools": tools, "max_tokens": 200}
    (block,) = http.post("/v1/messages", json=body).json()["content"]
    assert (block["type"], block["input"]) == ("tool_use", {"command": "ls\n"})
    body = {
        "model": "scripted",
        "input": asked["content"],
        "tools": [{"type": "function"} | TOOLS[0]["function"]],
    }
    (item,) = http.post("/v1/responses", json=body).json()["output"]
    assert (item["type"], json.loads(item["arguments"])) == ("function_call", {"command": "ls\n"})
