"""`suffix` of `/v1/completions`: the prompt of a gap, its end, and what is refused."""

import json

import httpx
import pytest

from engine.text.infill import InfillTokens
from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words
from tests.server.toy_tokenizer import END_OF_TEXT, byte_tokenizer

PREFIX, SUFFIX, MIDDLE, FILE_SEP = 1, 2, 3, 4
TOKENS = InfillTokens(PREFIX, SUFFIX, MIDDLE, False, frozenset({PREFIX, SUFFIX, MIDDLE, FILE_SEP}))


@pytest.fixture(scope="module")
def engine():
    engine = ScriptedEngine(words("ok"))
    engine.tokenizer.infill = TOKENS
    return engine


@pytest.fixture(scope="module")
def scripted(engine):
    with live(engine) as server, httpx.Client(base_url=server.url) as client:
        yield client


@pytest.fixture(scope="module")
def http():
    force = {0: ord("a"), 1: ord("b"), 2: FILE_SEP, 3: ord("c")}
    with byte_engine(force=force) as engine, live(engine) as server:
        engine.tokenizer.infill = TOKENS
        with httpx.Client(base_url=server.url, timeout=60) as client:
            yield client


def complete(client, **fields):
    body = {"model": "toy", "prompt": "x(", "suffix": ")y", "max_tokens": 8}
    return client.post("/v1/completions", json=body | fields)


def test_the_prompt_has_both_texts_between_their_tokens(scripted, engine):
    assert complete(scripted).status_code == 200
    assert engine.requests[-1].prompt_ids == (PREFIX, *b"x(", SUFFIX, *b")y", MIDDLE)
    assert complete(scripted, prompt=list(b"x(")).status_code == 200
    assert engine.requests[-1].prompt_ids == (PREFIX, *b"x(", SUFFIX, *b")y", MIDDLE)
    assert complete(scripted, prompt="").status_code == 200
    assert engine.requests[-1].prompt_ids == (PREFIX, SUFFIX, *b")y", MIDDLE)


def test_each_prompt_has_the_suffix(scripted, engine):
    del engine.requests[:]
    assert complete(scripted, prompt=["x(", "z("], n=2, best_of=2).status_code == 200
    assert [bytes(one.prompt_ids[1:3]) for one in engine.requests] == [b"x(", b"x(", b"z(", b"z("]


@pytest.mark.parametrize("suffix", ["", None])
def test_an_empty_suffix_is_none(scripted, engine, suffix):
    assert complete(scripted, suffix=suffix).status_code == 200
    assert engine.requests[-1].prompt_ids == tuple(b"x(")
    assert engine.requests[-1].sampling.stop_token_ids == ()


def test_spellings_of_control_tokens_in_a_document_are_text(scripted, engine):
    assert complete(scripted, prompt="<|im_end|>", suffix="<|im_start|>").status_code == 200
    assert max(engine.requests[-1].prompt_ids) < END_OF_TEXT


def test_the_bos_token_of_a_model_comes_first():
    engine = ScriptedEngine(words("ok"))
    engine.tokenizer = byte_tokenizer(add_bos=True)
    engine.tokenizer.infill = TOKENS
    with live(engine) as server, httpx.Client(base_url=server.url) as client:
        complete(client)
        complete(client, add_special_tokens=False)
    first, second = engine.requests
    assert first.prompt_ids == (END_OF_TEXT, *second.prompt_ids)


def test_the_middle_ends_where_the_next_file_would_begin(http):
    choice = complete(http).json()["choices"][0]
    assert (choice["text"], choice["finish_reason"]) == ("ab", "stop")
    plain = complete(http, suffix=None).json()["choices"][0]
    assert plain["text"].startswith("ab\x04c")
    free = complete(http, ignore_eos=True).json()["choices"][0]
    assert free["text"].startswith("ab\x04c")


def test_a_stream_with_logprobs_is_the_middle_only(http):
    text, tokens = "", []
    body = {"model": "toy", "prompt": "x(", "suffix": ")y", "logprobs": 1, "stream": True}
    with http.stream("POST", "/v1/completions", json=body) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                (choice,) = json.loads(line[6:])["choices"]
                text += choice["text"]
                tokens += (choice["logprobs"] or {"tokens": []})["tokens"]
    assert text == "ab"
    assert tokens[:2] == ["a", "b"]


@pytest.mark.parametrize("fields", [{"echo": True}, {"continued_tokens": 1}])
def test_fields_without_a_meaning_beside_a_suffix_are_refused(scripted, fields):
    response = complete(scripted, **fields)
    assert response.status_code == 400
    assert response.json()["error"]["param"] in fields


def test_a_model_without_the_tokens_refuses_a_suffix():
    with live(ScriptedEngine(words("ok"))) as server, httpx.Client(base_url=server.url) as client:
        response = complete(client)
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["param"], error["code"]) == ("suffix", "unsupported_parameter")
    assert "no tokens for fill-in-the-middle" in error["message"]


def test_a_chat_has_no_suffix(scripted):
    body = {"model": "toy", "messages": [{"role": "user", "content": "hi"}], "suffix": "x"}
    response = scripted.post("/v1/chat/completions", json=body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "suffix")


def test_a_prompt_and_suffix_beyond_the_context_are_refused(scripted):
    response = complete(scripted, suffix="y" * 600)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"
