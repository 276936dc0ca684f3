"""The API as tools call it: an application of this process, streamed and cancelled like a socket's."""

import asyncio
import json

import pytest

from app.server.mcp.api_client import ApiClient, ApiRefusal, in_process_client, remote_client
from app.server.mcp.plain_schema import plain_schema


def answers(*parts, status=200):
    """An application that answers with these parts of a body."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": []})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return app


async def test_a_request_arrives_as_it_was_sent():
    seen = {}

    async def echo(scope, receive, send):
        seen.update(scope, body=(await receive())["body"])
        await answers(b"{}")(scope, receive, send)

    async with in_process_client(echo) as http:
        await (
            ApiClient(http)
            .for_caller({"authorization": "Bearer k", "cookie": "c"})
            .post("/v1/x%2Fy", {"a": "ä"})
        )
    assert (seen["method"], seen["path"], seen["raw_path"]) == ("POST", "/v1/x/y", b"/v1/x%2Fy")
    headers = dict(seen["headers"])
    assert headers[b"authorization"] == b"Bearer k"
    assert headers[b"host"] == b"localhost"
    assert b"cookie" not in headers
    assert json.loads(seen["body"]) == {"a": "ä"}


async def test_events_arrive_while_they_are_made():
    go = asyncio.Event()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in (b': hi\n\ndata: {"n": 1}\n\nid: 3\nda', b'ta: {"n": 2}\n\n'):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await go.wait()
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})

    async with in_process_client(app) as http:
        events = ApiClient(http).events("GET", "/e")
        assert [(await anext(events))["n"], (await anext(events))["n"]] == [1, 2]
        go.set()
        with pytest.raises(StopAsyncIteration):
            await anext(events)


@pytest.mark.parametrize("begun", [False, True])
async def test_leaving_cancels_the_work(begun):
    cancelled, entered = asyncio.Event(), asyncio.Event()

    async def app(scope, receive, send):
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with in_process_client(app) as http:
        running = asyncio.create_task(ApiClient(http).get("/"))
        await entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert cancelled.is_set()


async def test_a_reader_that_is_slow_holds_the_application():
    sent = 0

    async def app(scope, receive, send):
        nonlocal sent
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"data: {}\n\n", "more_body": True})
            sent += 1

    async with in_process_client(app) as http:
        events = ApiClient(http).events("GET", "/")
        await anext(events)
        for _ in range(100):
            await asyncio.sleep(0)
        assert sent < 50
        await events.aclose()


@pytest.mark.parametrize(
    ("app", "status", "sentence"),
    [
        (answers(b'{"error": {"message": "No.", "code": "c"}}', status=404), 404, "No."),
        (answers(b"<html>", status=502), 502, "status 502"),
        (answers(b'{"error": 1}', status=500), 500, "status 500"),
        (answers(b"[]", status=400), 400, "status 400"),
    ],
)
async def test_a_refusal_has_the_words_of_the_api(app, status, sentence):
    async with in_process_client(app) as http:
        with pytest.raises(ApiRefusal, match=sentence) as raised:
            await ApiClient(http).get("/")
        assert raised.value.status == status
        with pytest.raises(ApiRefusal, match=sentence):
            await anext(ApiClient(http).events("POST", "/", body={}))


async def test_an_error_within_a_stream_is_a_refusal():
    app = answers(b'data: {"n": 1}\n\ndata: {"error": {"message": "Cut off."}}\n\n')
    async with in_process_client(app) as http:
        events = ApiClient(http).events("GET", "/")
        assert await anext(events) == {"n": 1}
        with pytest.raises(ApiRefusal, match=r"Cut off\."):
            await anext(events)


async def test_an_application_that_fails_is_not_mistaken_for_an_answer():
    async def fails(scope, receive, send):
        raise RuntimeError("broken")

    async def says_nothing(scope, receive, send):
        pass

    async with in_process_client(fails) as http:
        with pytest.raises(RuntimeError, match="broken"):
            await ApiClient(http).get("/")
    async with in_process_client(says_nothing) as http:
        with pytest.raises(ApiRefusal, match="without an answer"):
            await ApiClient(http).get("/")


async def test_a_server_that_is_not_there_is_a_refusal():
    async with remote_client("http://127.0.0.1:1", None) as http:
        with pytest.raises(ApiRefusal, match=r"http://127\.0\.0\.1:1.* does not answer"):
            await ApiClient(http).get("/v1/models")


def test_a_plain_schema_has_no_titles_references_and_nulls():
    schema = {
        "title": "T",
        "description": "of the class",
        "type": "object",
        "properties": {
            "title": {"title": "Title", "type": "string", "description": "kept"},
            "one": {"$ref": "#/$defs/One", "description": "own"},
            "maybe": {
                "anyOf": [{"type": "integer"}, {"type": "null"}],
                "default": None,
                "title": "Maybe",
            },
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 1},
            "many": {"type": "array", "items": {"$ref": "#/$defs/One"}},
        },
        "required": ["title"],
        "$defs": {"One": {"title": "One", "type": "object", "description": "a one"}},
    }
    assert plain_schema(schema) == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "kept"},
            "one": {"type": "object", "description": "own"},
            "maybe": {"type": "integer"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 1},
            "many": {"type": "array", "items": {"type": "object", "description": "a one"}},
        },
        "required": ["title"],
    }
