"""A change of the model over HTTP: the routes, requests in flight, and attached clients."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import httpx
import pytest

from engine.api.errors import (
    EngineUnavailable,
    InvalidRequest,
    ModelError,
    ModelNotFound,
)
from engine.api.generation_defaults import GenerationDefaults
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.clients.http_client import HttpClient
from engine.clients.in_process import InProcessClient
from engine.models.store import ModelStore
from tests.fakes.toy_engine import toy_config, toy_engine
from tests.fakes.toy_executor import BLOCK_BYTES_PER_TOKEN, toy_memory, toy_spec
from tests.server.byte_engine import PacedExecutor, wait_until
from tests.server.client_contract import ask, drain_all
from tests.server.live import live
from tests.server.toy_tokenizer import VOCAB_SIZE, byte_tokenizer

PATIENCE_S = 30


class Models:
    """Two installed models and a broken one; the gate, if set, holds back each step."""

    def __init__(self, folder):
        self.gate = None
        self.store = ModelStore(folder / "store", check=lambda path: None)
        for name in ("first", "second", "broken"):
            path = folder / f"{name}.gguf"
            path.write_bytes(name.encode())
            self.store.add(str(path))
        first = self.store.get("first")
        self.engine, _ = toy_engine(
            replace(toy_config(), model=first.path, name="first"),
            executor_factory=self._load,
            model_opener=self._open,
            models=self.store,
        )

    def _open(self, config):
        if config.name == "broken":
            raise ModelError("The file is damaged.")
        return SimpleNamespace(
            name=config.name,
            spec=replace(toy_spec(128 if config.name == "second" else 256), vocab_size=VOCAB_SIZE),
            paths=(),
            tokenizer=byte_tokenizer(add_bos=config.name == "second"),
            weight_format="F32" if config.name == "first" else "Q8_0",
            parameters=250,
            file_bytes=1000,
            images=None,
            uses_graphs=False,
            plan_memory=toy_memory,
            generation_defaults=GenerationDefaults(),
        )

    def _load(self, model, config, *, num_blocks, max_model_len, progress):
        progress(1.0)
        blocks = config.kv_cache_bytes // (config.block_size * BLOCK_BYTES_PER_TOKEN)
        executor = PacedExecutor(blocks, config.block_size, vocab_size=VOCAB_SIZE)
        executor.gate = self.gate
        return executor


@pytest.fixture
def models(tmp_path):
    return Models(tmp_path)


@pytest.fixture
def engine(models):
    models.engine.start()
    models.engine.wait_ready(PATIENCE_S)
    yield models.engine
    models.engine.shutdown()


@pytest.fixture
def server(engine):
    with live(engine) as running:
        yield running


@pytest.fixture
def http(server):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture(params=["in-process", "http"])
def client(request, engine, server):
    if request.param == "http":
        client = HttpClient(server.url)
        wait_until(lambda: client.snapshot().state is EngineState.READY)
        yield client
        client.close()
    else:
        yield InProcessClient(engine)


def changed_to(client, name):
    def done():
        snapshot = client.snapshot()
        return snapshot.state is EngineState.READY and snapshot.model.name == name

    return done


def test_a_load_sets_for_how_long_the_model_stays(server, http, monkeypatch):
    """By the setter, which wakes the thread that unloads idle models."""
    models, given = server.context.models, []
    setter = models.set_keep_alive
    monkeypatch.setattr(models, "set_keep_alive", lambda *them: (given.append(them), setter(*them)))
    response = http.post("/v1/models/second/load", json={"keep_alive": "5m"})
    assert response.status_code == 200, response.text
    assert given == [(None, 300.0)]
    assert models.primary.keep_alive_s == 300.0


def test_both_transports_list_the_installed_models(client):
    broken, first, second = client.models()
    assert [one.name for one in (broken, first, second)] == ["broken", "first", "second"]
    assert (broken.fits, broken.problem) == (False, "The file is damaged.")
    assert (first.loaded, first.fits, first.weight_format) == (True, True, "F32")
    assert (second.loaded, second.fits, second.weight_format) == (False, True, "Q8_0")
    assert second.size == len("second")


def test_both_transports_change_the_model_and_go_on(client):
    before = client.tokenizer_fingerprint()
    assert drain_all(client, client.submit(ask()))[-1].finish_reason is FinishReason.LENGTH
    client.load_model("second")
    wait_until(changed_to(client, "second"))
    assert client.tokenizer_fingerprint() == before  # a fake whose fingerprint is constant
    assert drain_all(client, client.submit(ask()))[-1].finish_reason is FinishReason.LENGTH
    client.unload_model()
    wait_until(lambda: client.snapshot().state is EngineState.UNLOADED)
    with pytest.raises(EngineUnavailable):
        client.submit(ask())
    with pytest.raises(EngineUnavailable):
        client.unload_model()
    client.load_model("first")
    wait_until(changed_to(client, "first"))


@pytest.mark.parametrize(
    ("name", "error"),
    [("nobody", ModelNotFound), ("broken", ModelError), ("first", InvalidRequest)],
)
def test_both_transports_refuse_with_the_same_error(client, name, error):
    with pytest.raises(error) as caught:
        client.load_model(name)
    assert type(caught.value) is error
    assert client.snapshot().state is EngineState.READY


def test_a_path_is_not_a_model_over_http(http, tmp_path):
    stray = tmp_path / "stray.gguf"
    stray.write_bytes(b"")
    answer = http.post(f"/v1/models/{str(stray).replace('/', '%2F')}/load", json={})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"


def test_the_model_list_names_the_model_in_force(http, engine):
    answer = http.post("/v1/models/second/load", json={"drain_seconds": 5})
    assert answer.status_code == 200
    engine.wait_ready(PATIENCE_S)
    listed = http.get("/v1/models").json()["data"][0]
    assert (listed["id"], listed["status"]) == ("second", "ready")
    assert listed["max_model_len"] == 128
    old = {"model": "first", "prompt": "hello"}
    refused = http.post("/v1/completions", json=old)
    assert refused.status_code == 404
    assert "this server has 'second'" in refused.json()["error"]["message"]
    assert http.post("/v1/completions", json=old | {"model": "second"}).status_code == 200


@pytest.mark.parametrize("body", [{"drain_seconds": -1}, {"drain_seconds": "soon"}])
def test_an_invalid_wait_is_a_400(http, body):
    assert http.post("/v1/models/second/load", json=body).status_code == 400


def test_a_server_without_a_model_says_so(http, engine):
    assert http.post("/v1/models/second/unload", json={}).status_code == 404
    assert http.post("/v1/models/first/unload", json={}).status_code == 200
    wait_until(lambda: engine.snapshot().state is EngineState.UNLOADED)
    refused = http.post("/v1/completions", json={"model": "first", "prompt": "hello"})
    assert refused.status_code == 503
    assert refused.json()["error"]["message"] == "No model is loaded."
    assert http.get("/ready").status_code == 503
    assert http.get("/snapshot").json()["tokenizer_fingerprint"] is None


def test_a_stream_that_the_change_cuts_off_ends_with_the_reason(models, tmp_path):
    models.gate = threading.Semaphore(0)
    models.engine.start()
    models.engine.wait_ready(PATIENCE_S)
    try:
        with live(models.engine) as server, httpx.Client(base_url=server.url, timeout=60) as http:
            body = {"model": "first", "prompt": "hello", "max_tokens": 200, "ignore_eos": True}
            body["stream"] = True
            with http.stream("POST", "/v1/completions", json=body) as answer:
                models.gate.release(3)
                lines = answer.iter_lines()
                assert next(lines).startswith("data:")
                assert (
                    http.post("/v1/models/second/load", json={"drain_seconds": 0}).status_code
                    == 200
                )
                models.gate.release(10**4)
                rest = "\n".join(lines)
            assert "The model was changed to second before the answer was complete." in rest
            models.engine.wait_ready(PATIENCE_S)
    finally:
        models.gate.release(10**4)
        models.engine.shutdown()


def test_an_idle_attached_client_learns_of_a_change_that_it_did_not_make(engine, server):
    now = [0.0]
    client = HttpClient(server.url, clock=lambda: now[0])
    try:
        wait_until(lambda: client.snapshot().state is EngineState.READY)
        now[0] = 100.0  # nothing has read the snapshot for long: polling pauses
        wait_until(lambda: not client._poller._wanted.is_set())
        engine.load_model("second")
        engine.wait_ready(PATIENCE_S)
        with pytest.raises(EngineUnavailable, match="no longer has the model first"):
            client.submit(ask())
        wait_until(changed_to(client, "second"))
        assert drain_all(client, client.submit(ask()))[-1].finish_reason is FinishReason.LENGTH
    finally:
        client.close()
