"""Who may use `/mcp`, and what happens with hostile messages."""

import json

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.live import live
from tests.server.mcp_requests import ACCEPT, META, MODERN, Session, ask_modern, modern, result_of
from tests.server.scripted_engine import ScriptedEngine, words

KEY = "sk-test-77aa"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def guarded():
    with live(ScriptedEngine(words("ok")), api_key=KEY) as server:
        yield server


def test_the_key_is_needed_and_reaches_the_tools(guarded):
    body, headers = modern("tools/call", {"name": "chat", "arguments": {"message": "a"}})
    with httpx.Client(base_url=guarded.url, timeout=60) as http:
        for wrong in ({}, {"authorization": "Bearer wrong"}):
            assert http.post("/mcp", json=body, headers=headers | wrong).status_code == 401
        for right in ({"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}):
            found = result_of(http.post("/mcp", json=body, headers=headers | right))
            assert found["structuredContent"]["answer"] == "ok"


def test_only_loopback_names_are_answered(client):
    body, headers = modern("tools/list")
    port = client.base_url.port
    for host, status in (
        ("evil.example", 403),
        (f"evil.example:{port}", 403),
        ("", 403),
        (f"localhost:{port}", 200),
        ("127.0.0.1", 200),
        (f"[::1]:{port}", 200),
    ):
        answer = client.post("/mcp", json=body, headers=headers | {"host": host})
        assert answer.status_code == status, host


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://evil.example", 403),
        ("https://localhost.evil.example", 403),
        ("http://127.0.0.1.evil.example:8000", 403),
        ("null", 403),
        ("", 403),
        ("file://localhost", 403),
        ("http://localhost:3000", 200),
        ("http://[::1]:1", 200),
        ("https://127.0.0.1", 200),
    ],
)
def test_pages_of_other_sites_are_refused(client, origin, status):
    body, headers = modern("tools/list")
    assert (
        client.post("/mcp", json=body, headers=headers | {"origin": origin}).status_code == status
    )
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    answer = client.post("/mcp", json=opening, headers=ACCEPT | {"origin": origin})
    assert (answer.status_code == 403) == (status == 403)


def test_a_page_that_may_read_answers_may_ask(engine):
    page = "https://chat.example"
    with (
        live(engine, cors_origins=(page,)) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        body, headers = modern("tools/list")
        answer = http.post("/mcp", json=body, headers=headers | {"origin": page})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == page
        other = {"origin": "https://other.example"}
        assert http.post("/mcp", json=body, headers=headers | other).status_code == 403
        asking = {"access-control-request-method": "POST", "origin": page}
        assert http.options("/mcp", headers=asking).status_code == 200


def deep(levels):
    return (
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":'
        + b'{"a":' * levels
        + b"1"
        + b"}" * (levels + 1)
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b"1",
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}',
        b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"tools/list"}',
        deep(200_000),
    ],
)
def test_a_hostile_body_gets_a_400(client, body):
    session = Session(client)
    for headers in (
        ACCEPT | JSON | {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"},
        session.headers | JSON,
        ACCEPT | JSON,
    ):
        answer = client.post("/mcp", content=body, headers=headers)
        assert answer.status_code == 400, answer.text
        assert len(answer.content) < 2000
    assert result_of(session.ask("ping")) == {}


def test_an_id_that_is_none_gets_no_result(client):
    body = b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}'
    headers = ACCEPT | JSON | {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"}
    assert client.post("/mcp", content=body, headers=headers).status_code == 400
    # The older revision's transport takes it for a notification.
    older = client.post("/mcp", content=body, headers=Session(client).headers | JSON)
    assert (older.status_code, older.content) == (202, b"")


def test_a_body_that_is_too_large_is_refused_before_it_is_read(client):
    body, headers = modern(
        "tools/call", {"name": "chat", "arguments": {"message": "x" * 5_000_000}}
    )
    assert client.post("/mcp", json=body, headers=headers).status_code == 413


def test_what_accepts_no_answer_gets_none(client):
    body, headers = modern("tools/list")
    for accept in ("text/html", "application/xml"):
        answer = client.post("/mcp", json=body, headers=headers | {"accept": accept})
        assert answer.status_code == 406


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tool=st.sampled_from(["chat", "decide", "embed", "search", "run_agent", "fork", "x"]),
    name=st.sampled_from(["message", "question", "texts", "options", "history", "name", "n", "z"]),
    value=JSON_VALUES,
)
def test_any_arguments_get_an_answer(client, tool, name, value):
    arguments = {name: value, "max_tokens": 1}
    answer = ask_modern(client, "tools/call", {"name": tool, "arguments": arguments})
    found = result_of(answer)
    assert found["content"][0]["text"]
    assert "log has the details" not in found["content"][0]["text"]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=JSON_VALUES, meta=JSON_VALUES)
def test_any_message_gets_an_answer(client, value, meta):
    body, headers = modern("tools/call", {"name": "list_collections"})
    for params in (value, {"name": value}, {"name": "chat", "arguments": value}):
        for given_meta in (META, meta):
            sent = {**params, "_meta": given_meta} if isinstance(params, dict) else params
            content = json.dumps(body | {"params": sent}).encode()
            answer = client.post("/mcp", content=content, headers=headers | JSON)
            assert answer.status_code in (200, 400), answer.text
