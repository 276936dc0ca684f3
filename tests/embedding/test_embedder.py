"""Embedding through `AsyncPravahaEngine` and both client transports."""

import base64
import threading

import httpx
import numpy as np
import openai
import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest, ModelNotFound, QueueFull
from engine.clients.http_client import HttpClient
from engine.clients.in_process import InProcessClient
from engine.embedding.embedder import MAX_PENDING, Embedder, installed_encoder
from engine.embedding.text_encoder import TextEncoder
from tests.embedding.tiny_bert import save_tiny_bert
from tests.fakes.toy_engine import ask, toy_engine
from tests.fakes.toy_executor import oracle
from tests.server.byte_engine import new_byte_engine, wait_until
from tests.server.live import live


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny_bert(directory)
    return directory


@pytest.fixture(scope="module")
def server(tiny):
    engine = new_byte_engine()
    engine.embedder = Embedder(lambda: tiny)
    engine.start()
    engine.wait_ready(30)
    with live(engine) as running:
        yield running
    engine.shutdown()


@pytest.fixture(scope="module")
def http(server):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def embed(http, **fields):
    return http.post("/v1/embeddings", json={"model": "minilm", "input": "hello world"} | fields)


def test_the_embedding_model_is_listed_where_it_is_installed(server, http):
    assert [one["id"] for one in http.get("/v1/models").json()["data"]] == ["toy", "minilm"]
    assert http.get("/v1/models/minilm").json()["id"] == "minilm"


def test_other_dimensions_are_refused_before_anything_is_embedded(tiny, monkeypatch):
    encoder = TextEncoder(tiny, name="tiny")
    monkeypatch.setattr(encoder, "_encode", lambda *_: pytest.fail("the text was encoded"))
    with pytest.raises(InvalidRequest, match="cannot be shortened") as refused:
        encoder.embed(["a"], dimensions=encoder.dimensions - 1)
    assert refused.value.param == "dimensions"


def test_a_text_keeps_its_tail(tiny):
    """The tokenizer file itself truncates and pads to 8 tokens."""
    encoder = TextEncoder(tiny, name="tiny")
    long, longer = encoder.embed(["a b c d e f g h i", "a b c d e f g h j"]).vectors
    assert (long != longer).any()
    assert encoder.embed(["a"]).tokens == 3


def test_texts_that_are_too_long_are_refused_or_cut_when_asked(tiny):
    encoder = TextEncoder(tiny, name="tiny")
    text = "a " * 46
    assert encoder.embed([text]).tokens == 48
    with pytest.raises(
        InvalidRequest, match=r"is 48 tokens; .* 49 tokens > 48 maximum, in text 1"
    ) as refused:
        encoder.embed(["a", text + "b"])
    assert refused.value.param == "input"
    cut = encoder.embed([text + "b"], truncate=48)
    assert cut.tokens == 48
    assert (cut.vectors == encoder.embed([text]).vectors).all()
    assert (encoder.embed(["a b c d"], truncate=4).vectors == encoder.embed(["a b"]).vectors).all()
    with pytest.raises(InvalidRequest, match="between 3 and 48"):
        encoder.embed(["a"], truncate=2)
    with pytest.raises(InvalidRequest, match="Text 1 is empty"):
        encoder.embed(["a", ""])
    with pytest.raises(InvalidRequest, match="Unicode"):
        encoder.embed(["\ud800"])


def test_embedding_and_decoding_do_not_wait_for_each_other(tiny):
    engine, executor = toy_engine(embedder=Embedder(lambda: tiny))
    executor.gate = threading.Semaphore(0)
    engine.start()
    stuck = engine.submit(ask("x"))
    executor.entered.acquire()  # a step runs and waits at the gate
    assert engine.embed(["hello world"]).vectors.shape == (1, 64)
    assert not stuck.finished
    executor.gate.release(1000)

    inside, leave = threading.Event(), threading.Event()

    def slow_find():
        inside.set()
        leave.wait()
        return tiny

    engine.embedder = Embedder(slow_find)
    pending = engine.embedder.submit(["hello"])
    inside.wait()
    request = ask("y")
    assert engine.submit(request).wait_result(30).token_ids == oracle(request)
    assert not pending.done()
    leave.set()
    assert pending.result(30).vectors.shape == (1, 64)
    engine.shutdown()


def test_calls_that_wait_are_bounded_and_end_with_the_engine(tiny):
    leave = threading.Event()

    def slow_find():
        leave.wait()
        return tiny

    embedder = Embedder(slow_find)
    calls = [embedder.submit(["hello"]) for _ in range(MAX_PENDING)]
    with pytest.raises(QueueFull):
        embedder.submit(["hello"])
    leave.set()
    assert all(call.result(60).tokens == 3 for call in calls)
    embedder.submit(["hello"]).result(60)
    embedder.close()
    embedder.close()
    with pytest.raises(EngineUnavailable):
        embedder.submit(["hello"])


def test_a_model_that_is_not_there_is_named_with_the_command_that_gets_it(tmp_path):
    with pytest.raises(ModelNotFound, match="pravaha models add minilm"):
        installed_encoder(tmp_path)
    engine, _ = toy_engine(embedder=Embedder(lambda: installed_encoder(tmp_path)))
    engine.start()
    with pytest.raises(ModelNotFound):
        engine.embed(["hello"])
    request = ask("after")
    assert engine.submit(request).wait_result(30).token_ids == oracle(request)
    engine.shutdown()


def test_floats_and_base64_are_the_same_numbers(http, tiny):
    texts = ["hello world", "a b c"]
    floats = embed(http, input=texts).json()
    packed = embed(http, input=texts, encoding_format="base64").json()
    expected = TextEncoder(tiny, name="minilm").embed(texts)
    for index in range(2):
        vector = np.array(floats["data"][index]["embedding"], np.float32)
        raw = np.frombuffer(base64.b64decode(packed["data"][index]["embedding"]), "<f4")
        assert (vector == expected.vectors[index]).all()
        assert (raw == expected.vectors[index]).all()
        assert floats["data"][index]["index"] == index
    assert floats["usage"] == {"prompt_tokens": 9, "total_tokens": 9}
    assert floats["object"] == "list"
    assert floats["model"] == "minilm"


def test_the_official_client_gets_its_vectors(server):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x")
    answer = client.embeddings.create(model="minilm", input=["hello", "world"])
    first, second = (np.array(one.embedding) for one in answer.data)
    assert first.shape == (64,)
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-5)
    assert (first != second).any()


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"input": []}, 400, "input"),
        ({"input": ""}, 400, "input[0]"),
        ({"input": ["a", ""]}, 400, "input[1]"),
        ({"input": [1, 2]}, 400, "input"),
        ({"input": [[1, 2]]}, 400, "input"),
        ({"input": "a " * 60}, 400, "input"),
        ({"input": ["a"] * 2049}, 400, "input"),
        ({"encoding_format": "hex"}, 400, "encoding_format"),
        ({"dimensions": 8}, 400, "dimensions"),
        ({"dimensions": 64}, 200, None),
        ({"truncate_prompt_tokens": 1}, 400, "truncate_prompt_tokens"),
        ({"input": "a " * 60, "truncate_prompt_tokens": 10}, 200, None),
        ({"model": "text-embedding-3-small"}, 404, "model"),
        ({"user": "me"}, 200, None),
    ],
)
def test_request_fields_are_applied_or_refused_by_name(http, fields, status, param):
    response = embed(http, **fields)
    assert response.status_code == status, response.text
    if status != 200:
        assert response.json()["error"]["param"] == param


def test_without_a_model_the_server_says_how_to_get_one(tmp_path):
    engine = new_byte_engine()
    engine.embedder = Embedder(lambda: installed_encoder(tmp_path))
    engine.start()
    with live(engine) as running, httpx.Client(base_url=running.url) as http:
        response = embed(http)
        assert response.status_code == 404
        assert "pravaha models add minilm" in response.json()["error"]["message"]
        client = HttpClient(running.url)
        with pytest.raises(ModelNotFound, match="pravaha models add minilm"):
            client.embed(["hello"])
        client.close()
    engine.shutdown()


@pytest.mark.parametrize("transport", ["in process", "HTTP"])
def test_both_transports_give_the_same_vectors(server, tiny, transport):
    texts = ["hello world", "x"]
    if transport == "HTTP":
        client = HttpClient(server.url)
        made = client.embed(texts)
        with pytest.raises(InvalidRequest):
            client.embed([""])
        client.close()
    else:
        made = InProcessClient(server.context.engine).embed(texts)
    expected = TextEncoder(tiny, name="minilm").embed(texts)
    assert made.model == "minilm"
    assert made.tokens == expected.tokens
    assert (made.vectors == expected.vectors).all()


def test_the_weights_can_be_read_freed_and_read_again(tiny):
    embedder = Embedder(lambda: tiny)
    assert not embedder.loaded
    embedder.load().result()
    assert embedder.loaded
    before = embedder.submit(["hello"]).result()
    waiting = [embedder.submit(["hello"]) for _ in range(3)]
    embedder.unload().result()
    assert not embedder.loaded
    after = embedder.submit(["hello"]).result()
    for one in (*(work.result() for work in waiting), after):
        assert np.array_equal(one.vectors, before.vectors)
    embedder.close()
    with pytest.raises(EngineUnavailable):
        embedder.load()


def test_the_embedding_model_is_loaded_and_unloaded_over_http(server, http):
    def status():
        return http.get("/v1/models/minilm").json()["status"]

    assert http.post("/v1/models/minilm/load", json={}).json()["status"] == "ready"
    assert status() == "ready"
    assert http.post("/v1/models/minilm/unload", json={}).json()["status"] == "unloaded"
    assert status() == "unloaded"
    assert embed(http).status_code == 200
    assert status() == "ready"
    assert http.post("/v1/models/minilm/reload", json={}).json()["status"] == "ready"
    assert embed(http).status_code == 200


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/rerank"])
def test_keep_alive_unloads_the_embedding_model(server, http, path):
    body = {"model": "minilm", "keep_alive": 0}
    body |= {"input": "a"} if "rerank" not in path else {"query": "a", "documents": ["b"]}
    http.post("/v1/models/minilm/unload", json={})
    assert http.post(path, json=body).status_code == 200
    wait_until(lambda: not server.context.models.embedder.loaded)
    assert http.post(path, json=body | {"keep_alive": "-1"}).status_code == 200
    assert server.context.models.embedder.loaded
