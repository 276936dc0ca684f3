"""Guardrails, and the end of the server, in Messages requests."""

import signal

import httpx

from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import Policy, mode_actions
from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.messages_client import ASK, accumulated, create, events_of, stream
from tests.server.process import toy_process

CARD = "4111 1111 1111 1111"
BLOCKED = "The secret plan is " + "x" * 400


def test_what_the_guardrails_find_is_listed_and_redacted():
    guardrails = Guardrails(Policy(*mode_actions("redact")))
    with (
        byte_engine(context=1024) as engine,
        live(engine, guardrails=guardrails) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        messages = [{"role": "user", "content": [{"type": "text", "text": f"My card is {CARD}."}]}]
        response = client.post("/v1/messages", json=ASK | {"messages": messages})
    assert response.status_code == 200
    assert "card=redact" in response.headers["x-pravaha-guardrails"]


def test_an_answer_that_is_blocked_ends_as_a_refusal():
    guardrails = Guardrails(Policy(*mode_actions("check"), blocklist=("secret plan",)))
    force = dict(enumerate(BLOCKED.encode()))
    with (
        byte_engine(force=force, context=1024) as engine,
        live(engine, guardrails=guardrails) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        fields = {"max_tokens": 300, "temperature": 0}
        for message in (create(client, **fields), accumulated(stream(client, **fields))):
            assert message["stop_reason"] == "refusal"
            assert message["stop_details"]["explanation"]
            assert "secret plan" not in str(message["content"])


def test_a_stream_that_outlives_the_server_ends_with_an_overload():
    fields = ASK | {"stream": True, "max_tokens": 400, "temperature": 0}
    with toy_process(engine={"step_s": 0.2}, drain_s=0.2) as server:
        with httpx.stream("POST", f"{server.url}/v1/messages", json=fields) as response:
            lines = response.iter_lines()
            first = [next(lines)]
            server.signal(signal.SIGTERM)
            events = events_of("\n".join([*first, *lines, ""]))
        assert server.exit_status() == 0
    assert events[0]["type"] == "message_start"
    assert events[-1]["error"]["type"] == "overloaded_error"
    assert events[-1]["request_id"] == response.headers["request-id"]
