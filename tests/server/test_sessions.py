"""What the prompts of a session have cost: new, reused and reread tokens add up."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.process.sessions import MAX_SESSIONS, Sessions, session_name
from tests.server.byte_engine import byte_engine
from tests.server.live import live

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
    assert session_name({"x-session-id": "a"}, "b", b"") == "b"
    assert session_name({"x-session-id": "a"}, None, b"") == "a"
    assert session_name({"x-affinity": "v"}, None, b"") == "v"
    assert session_name({}, None, b"\x01\x02") == "conversation-0102"


@pytest.fixture(scope="module")
def http():
    with (
        byte_engine(block_size=4) as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        yield client


def test_a_conversation_of_three_turns_is_read_once(http):
    messages = []
    for number in range(3):
        messages.append({"role": "user", "content": f"question {number}"})
        body = {
            "model": "toy",
            "messages": messages,
            "max_tokens": 6,
            "session_id": "s",
            "temperature": 0,
        }
        answer = http.post("/v1/chat/completions", json=body).json()
        messages.append(answer["choices"][0]["message"])
    session = next(one for one in http.get("/v1/sessions").json()["data"] if one["id"] == "s")
    assert session["requests"] == 3
    # At most the last block, and the last token of an answer, are computed again at each border.
    assert session["reread_tokens"] <= 2 * (4 + 1)
    assert session["computed_tokens"] <= session["new_tokens"] + session["reread_tokens"]
    assert session["hit_rate"] > 0.3
    metrics = http.get("/metrics").text
    assert 'pravaha_session_prompt_tokens_total{kind="new"}' in metrics
