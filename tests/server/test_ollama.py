"""Ollama's API: chats, prompts, vectors and models, as Ollama's clients send and read them."""

import json
import re

import httpx
import pytest

from engine.api.answer_parts import AnswerText, CallArguments, CallBegun
from engine.text.chat_template import CHATML
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

USER = {"role": "user", "content": "hi"}
OPTIONS = dict.fromkeys(("num_ctx", "seed", "num_predict", "temperature", "stop", "mirostat"))
NANOSECONDS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


def post(client, path, **body):
    return client.post(f"/api/{path}", json={"model": "toy"} | body)


def lines(response):
    assert response.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in response.text.splitlines()]


def scripted(*texts, path="chat", template=None, seen=None, **body):
    """The response to one request of an engine that writes these texts."""

    def script(request):
        if seen is not None:
            seen.append(request)
        return words(*texts)(request)

    with (
        live(ScriptedEngine(script, template=template)) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        return post(client, path, **body)


def test_a_chat_is_streamed_unless_told_otherwise():
    answer = lines(scripted("Good ", "day.", messages=[USER], tools=[], format="", options=OPTIONS))
    assert [one["message"]["content"] for one in answer] == ["Good ", "day.", ""]
    assert [one["done"] for one in answer] == [False, False, True]
    for one in answer:
        assert one["message"]["role"] == "assistant"
        assert one["model"] == "toy"
        assert isinstance(one["created_at"], str)
    assert answer[-1]["done_reason"] == "stop"
    assert all(isinstance(answer[-1][name], int) for name in NANOSECONDS)
    assert answer[-1]["eval_count"] == len("Good day.")


def test_a_chat_as_one_object(client):
    limited = {"num_predict": 5, "temperature": 0}
    answer = post(client, "chat", messages=[USER], stream=False, options=limited).json()
    assert answer["done"] is True
    assert answer["done_reason"] == "length"
    assert answer["eval_count"] == 5
    assert answer["prompt_eval_count"] > len("hi")
    assert answer["eval_duration"] > 0
    again = post(client, "chat", messages=[USER], options=limited)
    assert (
        "".join(one["message"]["content"] for one in lines(again)) == answer["message"]["content"]
    )


def test_names_have_a_tag_or_not(client):
    body = {"messages": [USER], "stream": False, "options": {"num_predict": 1}}
    assert post(client, "chat", **body | {"model": "toy:latest"}).json()["model"] == "toy:latest"
    refused = post(client, "chat", **body | {"model": "other"})
    assert refused.status_code == 404
    assert refused.json() == {"error": "model 'other' not found"}


def test_options_reach_the_engine():
    seen = []
    options = {
        "seed": 4, "num_predict": 7, "top_k": 3, "top_p": 0.5, "min_p": 0.1, "temperature": 0.25,
        "repeat_penalty": 1.5, "presence_penalty": 0.5, "frequency_penalty": 0.125, "stop": "x",
    }  # fmt: skip
    scripted("ok", messages=[USER], options=options, seen=seen)
    sampling = seen[0].sampling
    assert (sampling.seed, sampling.max_tokens, sampling.top_k) == (4, 7, 3)
    assert (sampling.top_p, sampling.min_p, sampling.temperature) == (0.5, 0.1, 0.25)
    assert (sampling.repetition_penalty, sampling.presence_penalty) == (1.5, 0.5)
    assert (sampling.frequency_penalty, sampling.stop) == (0.125, ("x",))


@pytest.mark.parametrize("limit", [-1, -2, 0])
def test_no_limit_has_three_spellings(limit):
    seen = []
    scripted("ok", messages=[USER], options={"num_predict": limit}, seen=seen)
    assert seen[0].sampling.max_tokens is None


def test_a_format_is_enforced(client):
    schema = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"]}
    body = {"messages": [USER], "stream": False, "options": {"num_predict": 60}}
    for given in (schema, "json"):
        answer = post(client, "chat", format=given, **body).json()
        assert answer["message"]["content"].startswith("{")
    assert json.loads(
        post(
            client,
            "chat",
            messages=[USER],
            format=schema | {"additionalProperties": False},
            stream=False,
        ).json()["message"]["content"]
    ) == {"n": 7}
    refused = post(client, "chat", messages=[USER], format="xml")
    assert refused.status_code == 400
    assert "`format`" in refused.json()["error"]


def test_options_without_effect_and_unknown_ones_are_listed_apart(client):
    answer = post(
        client, "chat", messages=[USER], stream=False,
        options={"num_ctx": 4096, "num_predict": 1, "magic": 1}, surprise=True,
    )  # fmt: skip
    assert answer.status_code == 200
    assert answer.headers["x-pravaha-ignored-fields"] == "surprise,options.magic"
    assert answer.headers["x-pravaha-without-effect"] == "options.num_ctx"


def test_strict_fields_refuse_what_is_unknown_here_too():
    with (
        live(ScriptedEngine(words("ok")), strict_fields=True) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        fields = {"messages": [USER], "options": {"num_ctx": 4096}}
        assert post(client, "chat", **fields).status_code == 200
        refused = post(client, "chat", **fields, surprise=True)
    assert refused.status_code == 400
    assert "'surprise'" in refused.json()["error"]


def test_thinking_has_a_member_of_its_own():
    template = CHATML.replace("assistant\\n' }}", "assistant\\n<think>' }}{# </think> #}")
    answer = lines(scripted("Hm.</think>", "Yes.", messages=[USER], think=True, template=template))
    assert [one["message"].get("thinking") for one in answer] == ["Hm.", None, None]
    assert [one["message"]["content"] for one in answer] == ["", "Yes.", ""]


def test_calls_are_objects_and_results_find_their_call():
    from app.server.calls.ollama_answer import _Calls, chat_payload
    from app.server.calls.ollama_request import chat_request
    from app.server.wire.ollama_schemas import OllamaChatRequest

    calls = _Calls()
    assert calls.add([AnswerText("a"), CallBegun(0, "c0", "f")], is_last=False) == []
    assert calls.add([CallArguments(0, '{"x":')], is_last=False) == []
    (first,) = calls.add([CallArguments(0, "1}"), CallBegun(1, "c1", "g")], is_last=False)
    (second,) = calls.add([], is_last=True)
    payload = chat_payload("", "", [first, second])["message"]
    assert payload["tool_calls"] == [
        {"id": "c0", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}},
        {"id": "c1", "function": {"index": 1, "name": "g", "arguments": {}}},
    ]
    # Clients drop the ids, and send the call back without content.
    sent = [{"function": call["function"]} for call in payload["tool_calls"]]
    body = OllamaChatRequest.model_validate(
        {
            "model": "toy",
            "messages": [
                USER,
                {"role": "assistant", "tool_calls": sent},
                {"role": "tool", "tool_name": "g", "content": "of g"},
                {"role": "tool", "tool_name": "f", "content": "of f"},
            ],
        }
    )
    request = chat_request(body, "toy")
    ids = {call.function.name: call.id for call in request.messages[1].tool_calls}
    assert [one.tool_call_id for one in request.messages[2:]] == [ids["g"], ids["f"]]
    assert len(set(ids.values())) == 2


def test_no_messages_and_no_prompt_load_the_model(client):
    for path in ("chat", "generate"):
        answer = post(client, path, stream=False).json()
        assert (answer["done"], answer["done_reason"]) == (True, "load")


def test_a_prompt_is_a_conversation_of_one_turn_and_returns_its_tokens():
    seen = []
    body = {"path": "generate", "prompt": "hi", "system": "be brief", "seen": seen}
    answer = lines(scripted("ok", **body))
    assert "".join(one["response"] for one in answer) == "ok"
    prompt = seen[0].prompt_ids
    assert answer[-1]["context"] == [*prompt, *b"ok"]
    assert b"be brief" in bytes(one for one in prompt if one < 256)
    scripted("ok", path="generate", prompt="more", context=answer[-1]["context"], seen=seen)
    assert list(seen[1].prompt_ids[: len(prompt) + 2]) == answer[-1]["context"]
    assert b"more" in bytes(one for one in seen[1].prompt_ids if one < 256)


def test_a_raw_prompt_is_not_put_into_the_template():
    seen = []
    answer = scripted("ok", path="generate", prompt="hi", raw=True, stream=False, seen=seen).json()
    assert bytes(seen[0].prompt_ids) == b"hi"
    assert answer["response"] == "ok"
    assert "context" not in answer


def test_wrong_bodies_get_a_sentence(client):
    for path, body, named in (
        ("chat", {"messages": [{"role": "robot"}]}, "role"),
        ("chat", {"messages": [USER], "options": {"temperature": "hot"}}, "options.temperature"),
        ("chat", {"messages": [USER], "options": {"top_p": 2.0}}, "options.top_p"),
        ("generate", {"prompt": 5}, "prompt"),
        ("show", {"model": None}, "model"),
    ):
        response = post(client, path, **body)
        assert response.status_code == 400
        assert named in response.json()["error"]


def test_a_body_needs_no_content_type(client):
    body = json.dumps(
        {"model": "toy", "messages": [USER], "stream": False, "options": {"num_predict": 1}}
    )
    assert client.post("/api/chat", content=body).status_code == 200


def test_models_are_listed_and_shown(client):
    assert client.get("/api/version").json()["version"]
    names = [one["model"] for one in client.get("/api/tags").json()["models"]]
    assert "toy:latest" in names
    (running,) = client.get("/api/ps").json()["models"]
    assert running["name"] == "toy:latest"
    listed = {one["model"]: one["digest"] for one in client.get("/api/tags").json()["models"]}
    assert running["digest"] == listed["toy:latest"]
    assert len(set(listed.values())) == len(listed)  # equal ones would be names of one model
    assert all(re.fullmatch(r"[0-9a-f]{64}", one) for one in listed.values())
    for body in ({"name": "toy"}, {"model": "toy:latest"}):
        shown = client.post("/api/show", json=body).json()
        assert shown["model_info"]["general.architecture"]
        assert "completion" in shown["capabilities"]
    assert client.post("/api/show", json={"model": "none"}).json() == {
        "error": "model 'none' not found"
    }


def test_only_names_can_be_pulled(client):
    for name in ("/etc/hostname", "http://example.org/model.gguf", "file:///x", "nothing"):
        response = client.post("/api/pull", json={"model": name, "stream": False})
        assert response.status_code == 400
        assert "to pull" in response.json()["error"]


def test_the_loaded_model_is_not_deleted(client):
    response = client.request("DELETE", "/api/delete", json={"model": "toy"})
    assert response.status_code == 400
    assert "unload" in response.json()["error"]
    assert client.request("DELETE", "/api/delete", json={"model": "x"}).status_code == 404
    assert client.request("DELETE", "/api/delete", json={}).status_code == 400
