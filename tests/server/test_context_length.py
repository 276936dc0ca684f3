"""A prompt beyond the context, in every face: clients recognise it by the words of the refusal."""

import re

import httpx
import pytest

from tests.server.byte_engine import CONTEXT, byte_engine
from tests.server.live import live

LONG = "x" * 600
IDS = [65] * 600

RECOGNIZED = {
    "openai": "maximum context length is 512 tokens",
    "litellm": "this model's maximum context length is",
    "langchain": "reduce the length of the messages",
    "openhands": "prompt is too long",
    "anthropic": r"prompt is too long: (\d+) tokens > (\d+) maximum",
}
"""Of each client, what it searches for in the lower-case text."""


def refusal(response):
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["code"] == "context_length_exceeded"
    return error


def missing_words(message):
    return [who for who, words in RECOGNIZED.items() if not re.search(words, message.lower())]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "prompt", "param"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": LONG}]}, "messages"),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "y" * 100}] * 6},
            "messages",
        ),
        ("/v1/completions", {"prompt": LONG}, "prompt"),
        ("/v1/completions", {"prompt": IDS}, "prompt"),
        ("/v1/completions", {"prompt": ["short", LONG]}, "prompt"),
        ("/v1/completions", {"prompt": [IDS]}, "prompt"),
        ("/v1/completions", {"prompt": LONG, "echo": True, "max_tokens": 0}, "prompt"),
    ],
)
def test_every_client_recognises_a_prompt_beyond_the_context(client, path, prompt, param, stream):
    response = client.post(path, json={"model": "toy", "stream": stream} | prompt)
    error = refusal(response)
    assert missing_words(error["message"]) == []
    assert error["param"] == param


def test_the_refusal_has_the_figures_of_the_prompt_and_of_the_context(client):
    asked = {"model": "toy", "prompt": IDS}
    assert refusal(client.post("/v1/completions", json=asked))["message"] == (
        "This model's maximum context length is 512 tokens, the answer included; the prompt is too long: "
        "600 tokens > 511 maximum. Please reduce the length of the messages."
    )
    scored = asked | {"max_tokens": 0}
    assert refusal(client.post("/v1/completions", json=scored))["message"] == (
        "This model's maximum context length is 512 tokens; the prompt is too long: "
        "600 tokens > 512 maximum. Please reduce the length of the messages."
    )


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "status"),
    [(511, 1, 200), (512, 1, 400), (512, 0, 200), (513, 0, 400)],
)
def test_a_prompt_may_leave_room_for_one_token(client, prompt, max_tokens, status):
    asked = {"model": "toy", "prompt": [65] * prompt, "max_tokens": max_tokens}
    assert client.post("/v1/completions", json=asked).status_code == status


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_an_answer_may_be_asked_to_be_longer_than_the_context(client, limit):
    """Clients send the largest number they know: the answer ends where the context does."""
    asked = {"model": "toy", "prompt": [65] * 500, "ignore_eos": True, limit: 128_000}
    answer = client.post("/v1/completions", json=asked).json()
    assert answer["usage"]["completion_tokens"] == CONTEXT - 500
    assert answer["choices"][0]["finish_reason"] == "length"


def test_a_pool_that_is_smaller_than_the_context_is_the_limit():
    asked = {"model": "toy", "prompt": [65] * 100}
    with byte_engine(blocks=4, block_size=16) as engine, live(engine) as server:
        error = refusal(httpx.post(f"{server.url}/v1/completions", json=asked))
    assert "maximum context length is 64 tokens here (the KV pool holds 64)" in error["message"]
    assert "prompt is too long: 100 tokens > 64 maximum" in error["message"]
    assert "--kv-cache" in error["message"]
    assert error["param"] == "prompt"
