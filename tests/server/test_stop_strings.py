"""Stop strings over HTTP: those that spell control tokens, and how many there may be."""

import json

import httpx
import pytest

from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.toy_tokenizer import IM_START

FORCED = {0: ord("o"), 1: ord("k"), 2: IM_START, 3: ord("!"), 4: ord("?")}
"""The answer is `ok<|im_start|>!?`, of which `ok!?` is visible, and goes on."""


@pytest.fixture(scope="module")
def http():
    with (
        byte_engine(force=FORCED) as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        yield client


def chat(http, **fields):
    body = {"model": "toy", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
    choice = http.post("/v1/chat/completions", json=body | fields).json()["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


def complete(http, **fields):
    body = {"model": "toy", "prompt": "hi", "max_tokens": 5}
    choice = http.post("/v1/completions", json=body | fields).json()["choices"][0]
    return choice["text"], choice["finish_reason"]


def streamed(path, body):
    def ask(http, **fields):
        text, finish = "", None
        with http.stream("POST", path, json=body | fields | {"stream": True}) as response:
            for line in response.iter_lines():
                if line.startswith("data: {"):
                    (choice,) = json.loads(line[6:])["choices"]
                    text += choice.get("text") or choice.get("delta", {}).get("content") or ""
                    finish = finish or choice["finish_reason"]
        return text, finish

    return ask


MESSAGES = [{"role": "user", "content": "hi"}]
CALLS = {
    "chat": chat,
    "completion": complete,
    "streamed chat": streamed(
        "/v1/chat/completions", {"model": "toy", "messages": MESSAGES, "max_tokens": 5}
    ),
    "streamed completion": streamed(
        "/v1/completions", {"model": "toy", "prompt": "hi", "max_tokens": 5}
    ),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (["<|im_start|>"], "ok"),
        ("<|im_start|>", "ok"),
        (["never", "k<|im_start|>"], "o"),
        (["<|im_start|>!"], "ok"),
        (["ok<|im_start|>!?"], ""),
        (["k!"], "o"),
    ],
)
def test_a_stop_string_may_spell_a_control_token(http, call, stop, text):
    assert CALLS[call](http, stop=stop) == (text, "stop")


@pytest.mark.parametrize("call", CALLS)
def test_a_control_token_that_is_no_stop_string_is_left_out(http, call):
    assert CALLS[call](http, stop=["<|endoftext|>", "never"]) == ("ok!?", "length")


def test_an_included_stop_string_is_shown(http):
    fields = {"stop": ["k<|im_start|>"], "include_stop_str_in_output": True}
    assert complete(http, **fields) == ("ok<|im_start|>", "stop")


def test_there_may_be_64_stop_strings_beside_empty_and_repeated_ones(http):
    stops = [f"never {number}" for number in range(63)]
    assert complete(http, stop=["<|im_start|>", *stops, "", *stops, ""]) == ("ok", "stop")
    assert chat(http, stop="") == chat(http, stop=None) == chat(http, stop=[])
    body = {"model": "toy", "prompt": "hi", "stop": [*stops, "a", "b"]}
    response = http.post("/v1/completions", json=body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "stop")
