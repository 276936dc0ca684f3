"""`echo` with `logprobs`, `prompt_logprobs` and `max_tokens: 0`, against log-softmax of the toy's logits."""

import json

import httpx
import numpy as np
import pytest

from app.server.wire.logprobs import LegacyLogprobs, vllm_prompt_logprobs
from engine.api.request import PromptLogprobs, TopLogprob
from engine.executors.reference_sampler import log_softmax
from tests.fakes.toy_executor import toy_logits
from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words
from tests.server.test_streaming import events_of
from tests.server.toy_tokenizer import END_OF_TEXT, IM_START, VOCAB_SIZE, byte_tokenizer

TEXT = "Once upon a time"
ASK = {"model": "toy", "prompt": TEXT, "temperature": 0, "ignore_eos": True}


def expected(ids):
    """Of every token but the first: its logprob, its rank, and all tokens, likeliest first."""
    entries = []
    for at in range(1, len(ids)):
        logits = toy_logits(ids[:at], VOCAB_SIZE)
        order = np.argsort(-logits, kind="stable").tolist()
        entries.append((log_softmax(logits)[ids[at]], order.index(ids[at]) + 1, order))
    return entries


def complete(client, **fields):
    response = client.post("/v1/completions", json=ASK | fields)
    assert response.status_code == 200, response.text
    return response.json()


def test_echo_with_logprobs_begins_with_the_prompts(client):
    ids = list(TEXT.encode())
    plain = complete(client, max_tokens=6, logprobs=3)["choices"][0]
    both = complete(client, max_tokens=6, logprobs=3, echo=True)["choices"][0]
    arrays = both["logprobs"]
    assert both["text"] == TEXT + plain["text"]
    assert arrays["tokens"] == [*TEXT, *plain["logprobs"]["tokens"]]
    assert arrays["token_logprobs"][0] is None
    assert arrays["top_logprobs"][0] is None
    for at, (logprob, _, order) in enumerate(expected(ids), start=1):
        assert arrays["token_logprobs"][at] == pytest.approx(logprob, abs=1e-5)
        assert len(arrays["top_logprobs"][at]) == len({byte_name(one) for one in order[:3]})
    assert arrays["token_logprobs"][len(ids) :] == plain["logprobs"]["token_logprobs"]
    offsets = plain["logprobs"]["text_offset"]
    assert arrays["text_offset"] == [*range(len(TEXT)), *(len(TEXT) + one for one in offsets)]


def byte_name(token):
    raw = byte_tokenizer().token_bytes(token)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return repr(raw)


def test_max_tokens_0_scores_the_prompt_and_writes_nothing(client):
    answer = complete(client, max_tokens=0, logprobs=0, echo=True)
    (choice,) = answer["choices"]
    assert choice["text"] == TEXT
    assert choice["finish_reason"] == "length"
    assert choice["logprobs"]["tokens"] == list(TEXT)
    assert choice["logprobs"]["top_logprobs"] is None
    assert answer["usage"]["completion_tokens"] == 0
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    bare = complete(client, max_tokens=0)["choices"][0]
    assert (bare["text"], bare["logprobs"]) == ("", None)


def test_a_stream_says_the_same(client):
    fields = {"max_tokens": 6, "logprobs": 2, "prompt_logprobs": 1, "echo": True}
    whole = complete(client, **fields)["choices"][0]
    response = client.post("/v1/completions", json=ASK | fields | {"stream": True})
    *chunks, _ = events_of(response.text)
    choices = [one for chunk in chunks for one in json.loads(chunk)["choices"]]
    assert "".join(one["text"] for one in choices) == whole["text"]
    for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
        joined = [entry for one in choices for entry in one["logprobs"][name]]
        assert joined == whole["logprobs"][name]
    assert choices[0]["prompt_logprobs"] == whole["prompt_logprobs"]
    assert not any("prompt_logprobs" in one for one in choices[1:])


def test_vllms_prompt_logprobs_of_several_prompts(client):
    prompts = ["abc", "Hello there"]
    answer = complete(client, prompt=prompts, max_tokens=1, prompt_logprobs=2)
    for prompt, choice in zip(prompts, answer["choices"], strict=True):
        first, *entries = choice["prompt_logprobs"]
        assert first is None
        assert choice["logprobs"] is None
        ids = list(prompt.encode())
        for token, entry, (logprob, rank, order) in zip(
            ids[1:], entries, expected(ids), strict=True
        ):
            assert next(iter(entry)) == str(token)
            own = entry[str(token)]
            assert own["logprob"] == pytest.approx(logprob, abs=1e-5)
            assert own["rank"] == rank
            assert own["decoded_token"] == chr(token)
            assert set(entry) == {str(one) for one in (token, *order[:2])}


@pytest.mark.parametrize("fields", [{"n": 4}, {"n": 2, "best_of": 4}], ids=["n", "best_of"])
def test_choices_have_equal_prompt_logprobs_and_compute_them_once(fields):
    scored = []
    ask = {"max_tokens": 3, "temperature": 1, "logprobs": 2, "prompt_logprobs": 1, "echo": True}
    with (
        byte_engine(watch=lambda plan: scored.extend(plan.score_targets.tolist())) as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url) as http,
    ):
        (one,) = complete(http, **ask)["choices"]
        assert scored == list(TEXT.encode()[1:])
        scored.clear()
        choices = complete(http, **ask, **fields)["choices"]
        assert scored == list(TEXT.encode()[1:])
    assert len(choices) == fields["n"]
    for choice in choices:
        assert choice["prompt_logprobs"] == one["prompt_logprobs"]
        for name, values in choice["logprobs"].items():
            assert values[: len(TEXT)] == one["logprobs"][name][: len(TEXT)]
            assert len(values) == len(TEXT) + 3
        assert choice["logprobs"]["text_offset"][len(TEXT)] == len(TEXT)


def test_a_chats_prompt_logprobs_stand_beside_its_choices(client):
    chat = {
        "model": "toy",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 2,
        "prompt_logprobs": 0,
    }
    answer = client.post("/v1/chat/completions", json=chat).json()
    assert len(answer["prompt_logprobs"]) == answer["usage"]["prompt_tokens"]
    refused = client.post("/v1/chat/completions", json=chat | {"stream": True})
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "prompt_logprobs"


@pytest.mark.parametrize("value", [-1, 21, True, "1"])
def test_out_of_range(client, value):
    response = client.post("/v1/completions", json=ASK | {"prompt_logprobs": value})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "prompt_logprobs"


def test_the_own_entry_comes_first_whatever_its_rank():
    scores = PromptLogprobs(
        logprobs=(-0.1, -9.0),
        ranks=(1, 7),
        top=((TopLogprob(98, -0.1), TopLogprob(99, -3.0)), (TopLogprob(1, -1.0),) * 1),
    )
    entries = vllm_prompt_logprobs(byte_tokenizer(), (97, 98, 99), scores, alternatives=1)
    assert entries[0] is None
    assert [(name, one["rank"]) for name, one in entries[1].items()] == [("98", 1)]
    assert [(name, one["rank"]) for name, one in entries[2].items()] == [("99", 7), ("1", 1)]


def test_offsets_skip_what_the_echo_leaves_out():
    scores = PromptLogprobs((-1.0,) * 3, (1,) * 3, ((),) * 3)
    legacy = LegacyLogprobs(byte_tokenizer(), alternatives=0, by_id=False)
    prompt = (END_OF_TEXT, 97, IM_START, 98)
    arrays = legacy.prompt_arrays(prompt, scores, hidden={END_OF_TEXT, IM_START})
    assert arrays["text_offset"] == [0, 0, 1, 1]
    assert legacy.arrays((99,), (-1.0,), ((),))["text_offset"] == [2]


def test_a_scripted_engine_is_asked_for_the_most_of_both():
    engine = ScriptedEngine(words("ok"))
    with live(engine) as server, httpx.Client(base_url=server.url) as http:
        http.post("/v1/completions", json=ASK | {"echo": True, "logprobs": 4})
        http.post("/v1/completions", json=ASK | {"echo": True, "logprobs": 1, "prompt_logprobs": 3})
        http.post("/v1/completions", json=ASK | {"logprobs": 4})
    assert [one.sampling.prompt_logprobs for one in engine.requests] == [4, 3, None]
