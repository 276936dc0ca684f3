"""What the prompts of a session have cost: new, reused and reread tokens add up."""

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.process.sessions import (
    MAX_REQUEST_NAMES,
    MAX_SESSIONS,
    RequestNames,
    Sessions,
    given_name,
    session_name,
    session_of_user,
)
from tests.server.byte_engine import byte_engine
from tests.server.live import live

UUID = "01234567-89ab-cdef-0123-456789abcdef"
prompts = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=6)


@given(prompts, st.data())
def test_the_kinds_add_up(asked, data):
    sessions = Sessions()
    for prompt in asked:
        cached = data.draw(st.integers(0, len(prompt)))
        cost = sessions.add("a", prompt, [1], cached)
        assert cost.new + cost.reused + cost.reread == len(prompt)
        assert min(cost.new, cost.reused, cost.reread) >= 0
    (session,) = sessions.recent()
    assert session.requests == len(asked)
    assert session.prompt_tokens == sum(map(len, asked))
    assert 0 <= session.hit_rate <= 1


def test_a_token_is_new_once():
    sessions = Sessions()
    assert sessions.add("a", [1, 2, 3], [4], 0).new == 3
    # The prompt goes on behind the answer; a block of two tokens was cached.
    cost = sessions.add("a", [1, 2, 3, 4, 5], [6], 2)
    assert (cost.new, cost.reused, cost.reread) == (1, 2, 2)
    # Its head has changed: all behind it is new.
    assert sessions.add("a", [9, 2, 3, 4, 5], [6], 0).new == 5


def test_the_oldest_session_goes_first():
    sessions = Sessions()
    for number in range(MAX_SESSIONS + 3):
        sessions.add(str(number), [1], [], 0)
    names = [one.name for one in sessions.recent()]
    assert (len(names), names[0], names[-1]) == (MAX_SESSIONS, str(MAX_SESSIONS + 2), "3")


def test_names_of_sessions():
    seen = RequestNames()
    assert given_name({"x-session-id": "a"}, "b", seen) == "b"
    assert given_name({"x-session-id": "a"}, None, seen) == "a"
    assert given_name({"x-affinity": "v"}, None, seen) == "v"
    assert given_name({}, None, seen) is None
    assert session_name(None, b"\x01\x02") == "conversation-0102"
    assert session_name("a", b"\x01\x02") == "a"


def test_an_id_of_a_request_names_a_session_when_it_comes_again():
    seen = RequestNames()
    assert given_name({"x-client-request-id": "one"}, None, seen) is None
    assert given_name({"x-client-request-id": "two"}, None, seen) is None
    assert given_name({"x-client-request-id": "one"}, None, seen) == "one"
    assert given_name({"x-client-request-id": "one", "x-session-id": "s"}, None, seen) == "s"


def test_few_ids_of_requests_are_remembered():
    seen = RequestNames()
    for number in range(MAX_REQUEST_NAMES + 1):
        assert not seen.is_session(str(number))
    assert seen.is_session(str(MAX_REQUEST_NAMES))
    assert not seen.is_session("0")


@pytest.mark.parametrize(
    ("user_id", "name"),
    [
        (f"user_{'0' * 64}_account_{UUID}_session_{UUID}", UUID),
        (f"user_{'0' * 64}_account__session_{UUID}", UUID),
        (json.dumps({"device_id": "d", "session_id": UUID}), UUID),
        (json.dumps({"session_id": 5}), None),
        ("[" * 100_000, None),
        ("somebody", None),
        (None, None),
        (7, None),
    ],
)
def test_the_session_in_a_user_id(user_id, name):
    assert session_of_user(user_id) == name


@given(st.text())
def test_any_user_id_is_read(user_id):
    name = session_of_user(user_id)
    assert name is None or (name and name in user_id)


def sessions_of(http):
    return {one["id"]: one for one in http.get("/v1/sessions").json()["data"]}


MESSAGES = [{"role": "user", "content": "hello"}]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


@pytest.mark.parametrize(
    ("path", "body", "headers", "name"),
    [
        ("/v1/chat/completions", {"session_id": "c1"}, {}, "c1"),
        ("/v1/chat/completions", {"prompt_cache_key": "c2"}, {}, "c2"),
        ("/v1/chat/completions", {}, {"x-session-affinity": "c3"}, "c3"),
        (
            "/v1/messages",
            {"metadata": {"user_id": f"user_0_account__session_{UUID}"}},
            {},
            UUID,
        ),
        ("/v1/responses", {"prompt_cache_key": "r1"}, {}, "r1"),
        ("/v1/responses", {}, {"session_id": "r2"}, "r2"),
        ("/api/chat", {}, {"x-session-id": "o1"}, "o1"),
    ],
)
def test_every_api_names_its_sessions(http, path, body, headers, name):
    asked = {"model": "toy", "messages": MESSAGES, "max_tokens": 3, "stream": False}
    if path == "/v1/responses":
        asked = {"model": "toy", "input": "hello", "max_output_tokens": 3, "store": False}
    if path == "/api/chat":
        asked = {"model": "toy", "messages": MESSAGES, "stream": False}
        asked["options"] = {"num_predict": 3}
    response = http.post(path, json=asked | body, headers=headers)
    assert response.status_code == 200, response.text
    assert sessions_of(http)[name]["requests"] == 1


@pytest.mark.parametrize(
    ("path", "body", "session", "may_be_held"),
    [
        ("/v1/chat/completions", {"messages": MESSAGES, "tools": TOOLS}, "s/", True),
        ("/v1/chat/completions", {"messages": MESSAGES}, "s/", False),
        ("/v1/chat/completions", {"messages": MESSAGES, "service_class": "agent"}, "s/", True),
        (
            "/v1/chat/completions",
            {"messages": MESSAGES, "tools": TOOLS, "service_class": "interactive"},
            "s/",
            False,
        ),
        (
            "/v1/chat/completions",
            {"messages": MESSAGES, "tools": TOOLS, "deadline_ms": 20_000},
            "s/",
            False,
        ),
        ("/v1/completions", {"prompt": "hello"}, "s", False),
        ("/v1/completions", {"prompt": "hello", "service_class": "batch"}, "s", True),
    ],
)
def test_what_the_engine_learns_of_a_session(http_engine, path, body, session, may_be_held):
    http, _, asked = http_engine
    asked.clear()
    body = {"model": "toy", "max_tokens": 3, "temperature": 0, **body}
    response = http.post(path, json=body, headers={"x-session-id": "s"})
    assert response.status_code == 200, response.text
    (request,) = asked
    assert request.session is not None
    assert request.session.startswith(session)
    assert request.may_be_held is may_be_held


def test_without_a_name_a_completion_is_of_no_session(http_engine):
    http, _, asked = http_engine
    asked.clear()
    http.post("/v1/completions", json={"model": "toy", "prompt": "hello", "max_tokens": 3})
    assert [(one.session, one.may_be_held) for one in asked] == [(None, False)]


@pytest.fixture(scope="module")
def http_engine():
    """A client, the engine, and the requests that the engine was asked."""
    asked = []
    with (
        byte_engine(block_size=4) as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        submit = engine.submit_all

        def submit_all(requests):
            asked.extend(requests)
            return submit(requests)

        engine.submit_all = submit_all
        yield client, engine, asked


@pytest.fixture
def http(http_engine):
    return http_engine[0]


def test_a_conversation_of_three_turns_is_read_once(http):
    messages = []
    for number in range(3):
        messages.append({"role": "user", "content": f"question {number}"})
        body = {
            "model": "toy",
            "messages": messages,
            "max_tokens": 6,
            "session_id": "three",
            "temperature": 0,
        }
        answer = http.post("/v1/chat/completions", json=body).json()
        messages.append(answer["choices"][0]["message"])
    session = next(one for one in http.get("/v1/sessions").json()["data"] if one["id"] == "three")
    assert session["requests"] == 3
    # At most the last block, and the last token of an answer, are computed again at each border.
    assert session["reread_tokens"] <= 2 * (4 + 1)
    assert session["computed_tokens"] <= session["new_tokens"] + session["reread_tokens"]
    assert session["hit_rate"] > 0.3
    metrics = http.get("/metrics").text
    assert 'pravaha_session_prompt_tokens_total{kind="new"}' in metrics
