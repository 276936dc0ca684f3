"""The exact shape of streams, with a scripted engine."""

import json
from contextlib import closing
from dataclasses import replace

import httpx
import pytest

from engine.api.request import FinishReason
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, batch, words

CHAT = {"model": "toy", "messages": [{"role": "user", "content": "hi"}], "stream": True}


def events_of(text):
    assert text.endswith("\n\n")
    events = text[:-2].split("\n\n")
    assert all(event.startswith("data: ") for event in events)
    return [event.removeprefix("data: ") for event in events]


def stream(engine, path="/v1/chat/completions", **body):
    with live(engine) as server:
        response = httpx.post(server.url + path, json=body)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    return events_of(response.text)


def test_a_chat_stream_is_role_text_finish_done():
    *chunks, done = stream(ScriptedEngine(words("Hel", "lo")), **CHAT)
    assert done == "[DONE]"
    chunks = [json.loads(chunk) for chunk in chunks]
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": None},
        {"content": "Hel"},
        {"content": "lo"},
        {},
    ]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None, None, None, "stop"]
    assert all("usage" not in chunk for chunk in chunks)
    for name in ("id", "created", "model", "system_fingerprint", "object"):
        assert len({chunk[name] for chunk in chunks}) == 1


def test_the_usage_chunk_comes_last_and_alone():
    options = {"stream_options": {"include_usage": True}}
    *chunks, usage, _ = stream(ScriptedEngine(words("Hello")), **CHAT, **options)
    assert all(json.loads(chunk)["usage"] is None for chunk in chunks)
    usage = json.loads(usage)
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 5
    assert usage["usage"]["total_tokens"] == usage["usage"]["prompt_tokens"] + 5


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_usage_so_far_in_every_chunk_on_demand(path):
    options = {"stream_options": {"continuous_usage_stats": True}, "stream": True, "model": "toy"}
    body = options | ({"prompt": "hi"} if path == "/v1/completions" else CHAT)
    *chunks, _ = stream(ScriptedEngine(words("Hel", "lo")), path, **body)
    usages = [json.loads(chunk)["usage"]["completion_tokens"] for chunk in chunks]
    assert usages == sorted(usages)
    assert (usages[0], usages[-1]) == (3, 5)
    assert all(json.loads(chunk)["choices"] for chunk in chunks)


def test_usage_counts_the_prompt_once_for_several_choices():
    options = {"stream_options": {"include_usage": True}}
    engine = ScriptedEngine(words("ab"))
    *_, usage, _ = stream(engine, **CHAT, **options, n=3)
    counts = json.loads(usage)["usage"]
    assert counts["prompt_tokens"] == len(engine.requests[0].prompt_ids)
    assert counts["completion_tokens"] == 6


def test_each_choice_has_its_own_role_and_finish():
    *chunks, _ = stream(ScriptedEngine(words("a", "b")), **CHAT, n=3)
    deltas = {index: [] for index in range(3)}
    for chunk in chunks:
        (choice,) = json.loads(chunk)["choices"]
        deltas[choice["index"]].append((choice["delta"], choice["finish_reason"]))
    for got in deltas.values():
        assert got == [
            ({"role": "assistant", "content": None}, None),
            ({"content": "a"}, None),
            ({"content": "b"}, None),
            ({}, "stop"),
        ]


def test_held_back_text_makes_no_empty_chunk_unless_its_tokens_were_asked_for():
    def script(request):
        return [
            batch(request, "a"),
            batch(request, ""),
            batch(request, "b", FinishReason.LENGTH),
        ]

    *chunks, _ = stream(ScriptedEngine(script), **CHAT)
    deltas = [json.loads(chunk)["choices"][0]["delta"] for chunk in chunks]
    assert {"content": ""} not in deltas
    assert json.loads(chunks[-1])["choices"][0]["finish_reason"] == "length"


def test_a_completion_stream_carries_text_then_the_reason():
    body = {"model": "toy", "prompt": "x", "stream": True, "logprobs": 0, "echo": None}
    *chunks, done = stream(ScriptedEngine(words("Hel", "lo")), "/v1/completions", **body)
    choices = [json.loads(chunk)["choices"][0] for chunk in chunks]
    assert done == "[DONE]"
    assert [choice["text"] for choice in choices] == ["Hel", "lo"]
    assert [choice["finish_reason"] for choice in choices] == [None, "stop"]
    offsets = [offset for choice in choices for offset in choice["logprobs"]["text_offset"]]
    assert offsets == [0, 1, 2, 3, 4]
    assert [choice["logprobs"]["top_logprobs"] for choice in choices] == [None, None]


def test_a_failure_after_the_first_byte_is_an_error_event_and_the_end():
    def script(request):
        return [
            batch(request, "a"),
            batch(request, "", FinishReason.ERROR, error="The step failed."),
        ]

    events = stream(ScriptedEngine(script), **CHAT)
    error = json.loads(events[-1])["error"]
    assert error["message"] == "The step failed."
    assert error["type"] == "server_error"
    assert "[DONE]" not in events


def test_a_failure_without_streaming_is_a_500():
    def script(request):
        return [batch(request, "", FinishReason.ERROR, error="The step failed.")]

    with live(ScriptedEngine(script)) as server:
        body = CHAT | {"stream": False}
        response = httpx.post(f"{server.url}/v1/chat/completions", json=body)
    assert response.status_code == 500
    assert response.json()["error"]["message"] == "The step failed."


def test_no_finish_reason_is_ever_invented():
    def script(request):
        return [batch(request, "a", FinishReason.ABORT)]

    *_, last = stream(ScriptedEngine(script), **CHAT)
    assert json.loads(last)["error"]["type"] == "overloaded_error"


def test_silence_is_filled_with_comments():
    engine = ScriptedEngine(lambda request: [batch(request, "a")])  # then nothing more
    with (
        live(engine, keep_alive_s=0.05) as server,
        httpx.stream("POST", f"{server.url}/v1/chat/completions", json=CHAT) as response,
    ):
        lines = (line for line in response.iter_lines() if line)
        assert next(lines).startswith("data: ")
        assert next(lines).startswith("data: ")
        assert next(lines) == ": keep-alive"
        assert next(lines) == ": keep-alive"


def test_the_head_of_a_stream_does_not_wait_for_the_first_token():
    engine = ScriptedEngine(lambda request: [])
    with live(engine) as server:
        with httpx.stream("POST", f"{server.url}/v1/chat/completions", json=CHAT) as response:
            assert response.status_code == 200
        assert engine.was_aborted.wait(10)


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_client_that_disconnects_aborts_every_choice(streaming, path):
    engine = ScriptedEngine(lambda request: [])
    body = json.dumps(
        {"model": "toy", "n": 3, "stream": streaming}
        | ({"prompt": "x"} if path == "/v1/completions" else {"messages": CHAT["messages"]})
    )
    with live(engine) as server:
        with closing(server.connect()) as connection:
            head = (
                f"POST {path} HTTP/1.1\r\nhost: localhost\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            connection.sendall((head + body).encode())
            if streaming:
                connection.recv(1)
            else:
                while len(engine.requests) < 3:  # submitted by the server's thread
                    engine.submitted.acquire()
        assert engine.was_aborted.wait(10)
    assert sorted(engine.aborted) == sorted(one.request_id for one in engine.requests)


def test_return_token_ids_and_timings():
    body = {"model": "toy", "prompt": "x", "return_token_ids": True, "return_timings": True}

    def script(request):
        return [replace(batch(request, "ab", FinishReason.STOP), drafted=(False, True))]

    with live(ScriptedEngine(script)) as server:
        (choice,) = httpx.post(f"{server.url}/v1/completions", json=body).json()["choices"]
    assert choice["prompt_token_ids"] == [120]
    assert choice["token_ids"] == [97, 98]
    assert choice["seed"] == 7
    assert choice["accepted_drafts"] == [1]
    assert choice["timings"] == {"scheduled": 0.0, "first_token": 0.0, "last_token": 0.0}
