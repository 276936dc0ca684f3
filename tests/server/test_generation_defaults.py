"""A model's generation defaults are used by every interface, where it gives no value of its own."""

import time

import httpx
import pytest

from app.commands.run import run_sampling
from app.settings.settings import Settings
from engine.api.generation_defaults import GenerationDefaults
from engine.api.request import Request
from engine.clients.http_client import HttpClient
from engine.clients.in_process import InProcessClient
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from tests.server.byte_engine import byte_engine, wait_until
from tests.server.live import live

DEFAULTS = GenerationDefaults(
    temperature=0.6,
    top_k=9,
    top_p=0.7,
    min_p=0.01,
    repetition_penalty=1.1,
    presence_penalty=0.2,
    frequency_penalty=0.3,
    dry_multiplier=0.5,
    dry_base=1.5,
    dry_allowed_length=3,
    dry_penalty_last_n=200,
    source="a test",
)


@pytest.fixture(scope="module")
def engine():
    with byte_engine(defaults=DEFAULTS) as engine:
        yield engine


@pytest.fixture
def requests(engine, monkeypatch):
    """The requests that the engine receives."""
    seen, submit, submit_all = [], engine.submit, engine.submit_all

    def watched(request):
        seen.append(request)
        return submit(request)

    def all_watched(requests):
        seen.extend(requests)
        return submit_all(requests)

    monkeypatch.setattr(engine, "submit", watched)
    monkeypatch.setattr(engine, "submit_all", all_watched)
    return seen


def settings(tmp_path, **given):
    return Settings(
        data_dir=tmp_path, cache_dir=tmp_path, config_dir=tmp_path, max_tokens=4, **given
    )


def over_http(engine, tmp_path, **given):
    fields = {"model": "toy", "max_tokens": 4, **given}
    with live(engine) as server, httpx.Client(base_url=server.url) as http:
        messages = [{"role": "user", "content": "hi"}]
        assert http.post("/v1/completions", json={**fields, "prompt": "hi"}).is_success
        assert http.post("/v1/chat/completions", json={**fields, "messages": messages}).is_success


def in_a_conversation(engine, tmp_path, **given):
    _converse(InProcessClient(engine), tmp_path, **given)


def attached(engine, tmp_path, **given):
    with live(engine) as server:
        client = HttpClient(server.url)
        wait_until(lambda: client.snapshot().model is not None)
        _converse(client, tmp_path, **given)
        client.close()


def _converse(client, tmp_path, **given):
    """What the screen and the plain chat do."""
    store = Store.open(tmp_path / "conversations.db")
    session = TreeSession(store, client, sampling=settings(tmp_path, **given).sampling())
    session.messages.send("hi")
    while session.answers.generating:
        session.pump()
        time.sleep(0.01)
    session.close()
    store.close()


def by_run(engine, tmp_path, **given):
    defaults = engine.snapshot().model.generation_defaults
    params = run_sampling(settings(tmp_path, **given), defaults, logprobs=None, grammar=None)
    engine.submit(Request((1, 2), params)).wait_result(30)


@pytest.mark.parametrize("interface", [over_http, in_a_conversation, attached, by_run])
def test_what_is_not_given_is_the_models_own(engine, requests, tmp_path, interface):
    interface(engine, tmp_path)
    assert requests
    for request in requests:
        used = {name: getattr(request.sampling, name) for name in DEFAULTS.values()}
        assert used == DEFAULTS.values()


@pytest.mark.parametrize("interface", [over_http, in_a_conversation, attached, by_run])
def test_what_is_given_wins(engine, requests, tmp_path, interface):
    interface(engine, tmp_path, temperature=0.0, repetition_penalty=1.0, dry_multiplier=0.0)
    assert requests
    for request in requests:
        sampling = request.sampling
        assert (sampling.temperature, sampling.repetition_penalty) == (0.0, 1.0)
        assert (sampling.dry_multiplier, sampling.top_k) == (0.0, 9)


def test_run_is_greedy_for_a_model_without_a_temperature(tmp_path):
    for given, expected in (({}, 0.0), ({"temperature": 0.4}, 0.4)):
        params = run_sampling(
            settings(tmp_path, **given), GenerationDefaults(top_k=3), logprobs=None, grammar=None
        )
        assert (params.temperature, params.top_k) == (expected, 3)
