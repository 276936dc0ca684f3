"""`POST /fork`: its fields, shared blocks and refusals."""

import json
from dataclasses import replace

import httpx
import pytest

from app.server.routes.fork import sampling_changes
from app.server.wire.schemas import ForkRequest
from engine.api.request import Request, SamplingParams
from engine.runtime.forking import child_seed
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live

PARENTS = SamplingParams(temperature=1.0, seed=3, top_p=0.9, max_tokens=400, ignore_eos=True)


@pytest.fixture(scope="module")
def engine():
    with byte_engine(step_s=0.02, max_num_seqs=8) as running:
        yield running


@pytest.fixture(scope="module")
def http(engine):
    with live(engine) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def parent(engine):
    handle = engine.submit(Request(tuple(b"the parent of all these forks"), PARENTS))
    wait_until(lambda: engine.snapshot().running > 0)
    yield handle
    handle.abort()
    wait_until(lambda: is_quiet(engine))


def test_a_seed_of_minus_one_is_not_the_parents():
    body = ForkRequest(parent="a", seed=-1)
    seeds = {sampling_changes(body, vocab_size=9)["seed"] for _ in range(3)}
    assert len(seeds) == 3
    assert all(0 <= seed < 2**64 for seed in seeds)


def test_the_answer_is_a_completion_of_the_parents_tokens(http, engine, parent):
    at = len(parent.request.prompt_ids)
    body = {
        "parent": parent.request_id,
        "at": at,
        "n": 2,
        "max_tokens": 4,
        "return_token_ids": True,
    }
    response = http.post("/fork", json=body)
    assert response.status_code == 200
    assert response.headers["x-pravaha-forked-at"] == str(at)
    answer = response.json()
    assert answer["object"] == "text_completion"
    assert answer["model"] == engine.model_info.name
    for index, choice in enumerate(answer["choices"]):
        seed = child_seed(3, index + 1)
        sampling = replace(PARENTS, seed=seed, max_tokens=4)
        alone = engine.submit(Request(parent.request.prompt_ids, sampling)).wait_result(60)
        assert choice["index"] == index
        assert tuple(choice["token_ids"]) == alone.token_ids
        assert tuple(choice["prompt_token_ids"]) == parent.request.prompt_ids
        assert choice["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 8
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == at - 1


def test_a_stream_says_where_it_was_forked_before_its_first_token(http, parent):
    body = {"parent": parent.request_id, "stream": True, "max_tokens": 3, "request_id": "kid"}
    with http.stream("POST", "/fork", json=body) as response:
        at = int(response.headers["x-pravaha-forked-at"])
        assert at >= len(parent.request.prompt_ids)
        assert response.read().endswith(b"data: [DONE]\n\n")


def test_a_client_that_disconnects_frees_its_child(http, engine, parent):
    body = {"parent": parent.request_id, "stream": True, "request_id": "leaver"}
    with http.stream("POST", "/fork", json=body) as response:
        wait_until(lambda: engine.snapshot().running == 2)
        response.close()
    wait_until(lambda: engine.snapshot().running == 1)


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"parent": "nobody"}, 404, "parent"),
        ({}, 400, "parent"),
        ({"at": 0}, 400, "at"),
        ({"at": 450}, 400, "at"),
        ({"n": 0}, 400, "n"),
        ({"n": 10**6}, 400, "n"),
        ({"model": "another"}, 404, "model"),
        ({"temperature": -1}, 400, "temperature"),
        ({"priority": 1}, 400, "priority"),
        ({"deadline_ms": 50}, 400, "deadline_ms"),
        ({"cache_salt": "another"}, 400, "cache_salt"),
        ({"logit_bias": {"999999": 1}}, 400, "logit_bias"),
        ({"guided_regex": "("}, 400, "guided_regex"),
    ],
)
def test_what_cannot_be_forked_is_refused_by_name(http, parent, body, status, param):
    given = {"parent": parent.request_id} | body if body else {}
    response = http.post("/fork", json=given)
    assert response.status_code == status
    assert response.json()["error"]["param"] == param


def test_fields_that_are_left_out_are_the_parents():
    def changed(**fields):
        body = ForkRequest(parent="p", **fields)
        return replace(PARENTS, **sampling_changes(body, vocab_size=300))

    assert changed() == PARENTS
    assert changed(temperature=0.0) == replace(PARENTS, temperature=0.0)
    assert changed(top_k=-1, logprobs=2) == replace(PARENTS, top_k=0, logprobs=2)
    assert changed(include_stop_str_in_output=True) == replace(PARENTS, include_stop=True)
    assert changed(stop="x", seed=8) == replace(PARENTS, stop=("x",), seed=8)
    assert changed(logit_bias={"3": 1.5}) == replace(PARENTS, logit_bias=((3, 1.5),))


def test_a_running_chat_is_forked_by_the_id_of_its_completion(http, engine):
    body = {
        "model": "toy",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "max_tokens": 300,
        "ignore_eos": True,
    }
    with http.stream("POST", "/v1/chat/completions", json=body) as running:
        lines = running.iter_lines()  # kept: a dropped iterator disconnects
        chunk = next(line for line in lines if line.startswith("data: "))
        parent = json.loads(chunk.removeprefix("data: "))["id"]
        fork = {"parent": parent, "max_tokens": 2}
        response = http.post("/v1/branch", json=fork)
        assert response.status_code == 200, response.text
        assert int(response.headers["x-pravaha-forked-at"]) > 0
    wait_until(lambda: is_quiet(engine))
    assert http.post("/v1/branch", json=fork).status_code == 404
