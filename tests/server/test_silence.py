"""No stream is silent for long, while a prompt is read and while its model is loaded."""

import json
import threading
from contextlib import contextmanager

import httpx
import pytest
from mcp.client import Client

from tests.fakes.toy_models import ToyModels
from tests.server.byte_engine import byte_engine, wait_until
from tests.server.live import live
from tests.server.mcp_requests import Session, message, modern

MESSAGES = [{"role": "user", "content": "m"}]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
STREAMS = {
    "completions": ("/v1/completions", {"prompt": "p", "max_tokens": 4}),
    "chat": ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 4}),
    "chat with tools": (
        "/v1/chat/completions",
        {"messages": MESSAGES, "max_tokens": 4, "tools": [TOOL], "tool_choice": "none"},
    ),
    "responses": ("/v1/responses", {"input": "p", "max_output_tokens": 4}),
    "background": ("/v1/responses", {"input": "p", "max_output_tokens": 4, "background": True}),
    "messages": ("/v1/messages", {"messages": MESSAGES, "max_tokens": 4}),
    "ollama chat": ("/api/chat", {"messages": MESSAGES, "options": {"num_predict": 4}}),
    "ollama generate": ("/api/generate", {"prompt": "p", "options": {"num_predict": 4}}),
    "ollama raw": ("/api/generate", {"prompt": "p", "raw": True, "options": {"num_predict": 4}}),
    "llama.cpp": ("/completion", {"prompt": "p", "n_predict": 4}),
}
SIGNS = 4
"""Times that something must arrive before anything has been generated."""


def send(connection, path, fields, headers=()):
    data = json.dumps(fields).encode()
    given = {"host": "localhost", "connection": "close", "content-type": "application/json"}
    given |= {"content-length": len(data), **dict(headers)}
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in given.items())
    connection.sendall(head.encode() + b"\r\n" + data)


def read_signs(connection):
    """What arrives at `SIGNS` times; a timeout is a stream that stays silent."""
    return b"".join(connection.recv(65_536) for _ in range(SIGNS))


def read_rest(connection):
    received = b""
    while part := connection.recv(65_536):
        received += part
    return received


def has_error(received):
    return any(mark in received for mark in (b'"error":{', b'"error":"', b'"failed"'))


@pytest.mark.parametrize("name", list(STREAMS))
def test_a_stream_shows_signs_of_life_while_its_prompt_is_read(name):
    path, fields = STREAMS[name]
    gate = threading.Semaphore(0)
    with byte_engine(gate=gate) as engine, live(engine, keep_alive_s=0.05) as server:
        try:
            with server.connect() as connection:
                send(connection, path, fields | {"model": "toy", "stream": True})
                assert read_signs(connection).startswith(b"HTTP/1.1 200")
                gate.release(10_000)
                assert not has_error(read_rest(connection))
        finally:
            gate.release(10_000)


@pytest.mark.parametrize("revision", ["modern", "legacy"])
def test_a_call_over_mcp_shows_signs_of_life_without_asking_for_progress(revision):
    gate = threading.Semaphore(0)
    call = {"name": "complete", "arguments": {"prompt": "p", "max_tokens": 4, "seed": 1}}
    with byte_engine(gate=gate) as engine, live(engine, keep_alive_s=0.05) as server:
        try:
            with httpx.Client(base_url=server.url, timeout=60) as http:
                if revision == "modern":
                    body, headers = modern("tools/call", call)
                else:
                    body, headers = message("tools/call", call), Session(http).headers
                with http.stream("POST", "/mcp", json=body, headers=headers) as answer:
                    assert answer.headers["content-type"].startswith("text/event-stream")
                    lines = answer.iter_lines()
                    for _ in range(SIGNS):
                        while not next(lines).startswith(": keep-alive"):
                            pass
                    gate.release(10_000)
                    datas = [json.loads(line[6:]) for line in lines if line[:6] == "data: "]
                (result,) = [one["result"] for one in datas if one.get("id") == body["id"]]
                assert result["structuredContent"]["completion_tokens"] >= 1
        finally:
            gate.release(10_000)


async def test_the_official_client_of_mcp_reads_past_the_comments():
    with byte_engine(step_s=0.02) as engine, live(engine, keep_alive_s=0.01) as server:
        for mode in ("auto", "legacy"):
            async with Client(f"{server.url}/mcp", mode=mode) as client:
                given = {"prompt": "p", "max_tokens": 8, "temperature": 0}
                assert not (await client.call_tool("complete", given)).is_error


@contextmanager
def loading(tmp_path, **config):
    """A server whose model `second` is loaded when the semaphore is released."""
    load = threading.Semaphore(0)
    toys = ToyModels(tmp_path, load_gates={"second": load})
    models = toys.served("first", max_loaded=2, any_installed=True)
    models.start()
    try:
        with live(models, **config) as server:
            wait_until(lambda: models.primary.is_loaded)
            yield server, load, toys
    finally:
        load.release()
        models.close()


@pytest.mark.parametrize("name", [one for one in STREAMS if one != "chat with tools"])
def test_a_stream_shows_signs_of_life_while_its_model_is_loaded(tmp_path, name):
    path, fields = STREAMS[name]
    with (
        loading(tmp_path, keep_alive_s=0.05) as (server, load, _),
        server.connect() as connection,
    ):
        send(connection, path, fields | {"model": "second", "stream": True})
        assert read_signs(connection).startswith(b"HTTP/1.1 200")
        load.release()
        assert not has_error(read_rest(connection))


OLLAMA_STREAMS = [
    ("/api/chat", {"messages": MESSAGES, "options": {"num_predict": 4}}),
    ("/api/chat", {"messages": []}),  # only loads the model
    ("/api/generate", {"prompt": "p", "options": {"num_predict": 4}}),
    ("/api/generate", {"prompt": "p", "stream": None, "options": {"num_predict": 4}}),
]


@pytest.mark.parametrize(("path", "fields"), OLLAMA_STREAMS)
def test_each_line_of_ollamas_streams_is_an_object_after_a_load(tmp_path, path, fields):
    """Its clients parse each line by itself; a space before the first object is none of their concern."""
    with loading(tmp_path, keep_alive_s=0.02) as (server, load, _):
        body = fields | {"model": "second"}
        with (
            httpx.Client(base_url=server.url, timeout=60) as http,
            http.stream("POST", path, json=body) as answer,
        ):
            assert answer.headers["content-type"].startswith("application/x-ndjson")
            received = answer.iter_bytes()
            assert next(received).strip() == b""
            load.release()
            lines = b"".join(received).splitlines()
        objects = [json.loads(line) for line in lines]
        assert [one["done"] for one in objects] == [False] * (len(objects) - 1) + [True]
        assert {one["model"] for one in objects} == {"second"}


def test_a_load_that_fails_is_a_line_with_the_error_in_ollamas_streams(tmp_path):
    with loading(tmp_path, keep_alive_s=0.02) as (server, load, toys):
        toys.failing.add("second")
        body = {"model": "second", "messages": MESSAGES}
        with (
            httpx.Client(base_url=server.url, timeout=60) as http,
            http.stream("POST", "/api/chat", json=body) as answer,
        ):
            received = answer.iter_bytes()
            assert next(received).strip() == b""
            load.release()
            (line,) = b"".join(received).splitlines()
        assert "The weights are damaged" in json.loads(line)["error"]


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
def test_an_answer_of_ollama_that_is_no_stream_keeps_its_status_after_a_load(tmp_path, path):
    fields = dict(next(given for one, given in OLLAMA_STREAMS if one == path))
    with loading(tmp_path, keep_alive_s=0.02) as (server, load, _):
        threading.Timer(0.2, load.release).start()
        with httpx.Client(base_url=server.url, timeout=60) as http:
            answer = http.post(path, json=fields | {"model": "second", "stream": False})
        assert answer.headers["content-type"].startswith("application/json")
        assert answer.json()["done"]
