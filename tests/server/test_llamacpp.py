"""llama.cpp's own endpoints, as plug-ins for editors use them."""

import json

import httpx
import pytest

from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

GBNF = """
root ::= "yes" | "no" tail
tail ::= [a-c]{2}
"""


def events(response):
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines]


def scripted(*texts, path="/completion", **body):
    seen = []

    def script(request):
        seen.append(request)
        return words(*texts)(request)

    with live(ScriptedEngine(script)) as server, httpx.Client(base_url=server.url) as client:
        return client.post(path, json=body), seen


def test_a_completion_as_one_object():
    response, (request,) = scripted(
        "one\n", "two", prompt="hi", n_predict=9, temperature=0.5, repeat_penalty=1.25, stop="x",
        logit_bias=[[65, False], [66, 1.5]], cache_prompt=True, id_slot=0, samplers=["top_k"],
    )  # fmt: skip
    answer = response.json()
    assert (answer["content"], answer["stop"], answer["stop_type"]) == ("one\ntwo", True, "eos")
    assert answer["has_new_line"] is True
    assert answer["tokens_predicted"] == 7
    assert answer["tokens_evaluated"] == 2
    assert answer["timings"]["predicted_n"] == 7
    assert "x-pravaha-ignored-fields" not in response.headers
    sampling = request.sampling
    assert (sampling.max_tokens, sampling.temperature) == (9, 0.5)
    assert (sampling.repetition_penalty, sampling.stop) == (1.25, ("x",))
    assert dict(sampling.logit_bias) == {65: -100.0, 66: 1.5}


def test_a_stream_ends_with_the_counts():
    response, _ = scripted("one", " two", prompt="hi", stream=True, return_tokens=True)
    *pieces, last = events(response)
    assert [one["content"] for one in pieces] == ["one", " two"]
    assert pieces[0]["tokens"] == list(b"one")
    assert [one["stop"] for one in (*pieces, last)] == [False, False, True]
    assert last["tokens_predicted"] == 7


def test_a_prompt_may_mix_text_and_token_ids():
    _, (request,) = scripted("ok", prompt=["ab", 67, "d"])
    assert bytes(request.prompt_ids) == b"abCd"


@pytest.mark.parametrize("limit", [-1, -2, None])
def test_no_limit(limit):
    _, (request,) = scripted("ok", prompt="hi", n_predict=limit)
    assert request.sampling.max_tokens is None


def test_a_grammar_in_gbnf_is_enforced(client):
    for path, body in (
        ("/completion", {"prompt": "hi"}),
        ("/v1/completions", {"model": "toy", "prompt": "hi", "max_tokens": 9}),
    ):
        response = client.post(path, json=body | {"grammar": GBNF, "temperature": 0}).json()
        text = response["content"] if path == "/completion" else response["choices"][0]["text"]
        assert text == "yes" or (text[:2] == "no" and set(text[2:]) <= set("abc"))


@pytest.mark.parametrize("grammar", ["root ::= (", "root ::= nothing", "start ::= 'a'"])
def test_a_grammar_that_is_none_is_named(client, grammar):
    response = client.post("/completion", json={"prompt": "hi", "grammar": grammar})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "grammar"
    assert "GBNF" in response.json()["error"]["message"]


def test_an_empty_grammar_is_none(client):
    body = {"prompt": "hi", "grammar": "", "n_predict": 2}
    assert client.post("/completion", json=body).json()["tokens_predicted"] == 2


def test_a_model_without_the_tokens_fills_no_gap(client):
    response = client.post("/infill", json={"input_prefix": "a", "input_suffix": "b"})
    assert response.status_code == 400
    assert "fill-in-the-middle" in response.json()["error"]["message"]


def test_unknown_parameters_are_listed(client):
    response = client.post("/completion", json={"prompt": "hi", "n_predict": 1, "mystery": 1})
    assert response.status_code == 200
    assert response.headers["x-pravaha-ignored-fields"] == "mystery"


def test_the_server_describes_itself(client):
    props = client.get("/props").json()
    assert props["default_generation_settings"]["n_ctx"] == 512
    assert props["total_slots"] == 32
    assert props["modalities"]["vision"] is False
    assert "<|im_start|>" in props["chat_template"]
    assert client.get("/health").json() == {"status": "ok"}


def test_slots_are_the_rows_of_the_engine():
    with (
        byte_engine(step_s=0.01) as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
        client.stream(
            "POST",
            "/completion",
            json={"prompt": "hi", "stream": True, "ignore_eos": True, "n_predict": 200},
        ) as response,
    ):
        lines = response.iter_lines()  # kept: its end would close the connection
        next(lines)
        slots = httpx.get(f"{server.url}/slots").json()
        assert len(slots) == 32
        assert [one["id"] for one in slots] == list(range(32))
        assert slots[0]["is_processing"] is True
        assert not any(one["is_processing"] for one in slots[1:])
