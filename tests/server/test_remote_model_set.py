"""Several models of a server, each through a connection of its own: `pravaha --attach`."""

import threading

import pytest

from engine.api.errors import EngineUnavailable, ModelNotFound
from engine.api.snapshot import EngineState
from engine.clients.http_client import HttpClient
from engine.clients.remote_model_set import RemoteModelSet
from engine.clients.several_models_client import SeveralModelsClient, as_client
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from tests.fakes.toy_models import ToyModels
from tests.server.byte_engine import wait_until
from tests.server.client_contract import ask, drain_all
from tests.server.test_several_models import Served


@pytest.fixture
def toys(tmp_path):
    return ToyModels(tmp_path)


@pytest.fixture
def remote():
    """Opens the models of a server; all are closed at the end."""
    opened = []

    def open_remote(served):
        client = HttpClient(served.server.url)
        try:
            names = client.served_models()
        finally:
            client.close()
        opened.append(RemoteModelSet(served.server.url, api_key=None, names=names))
        return opened[-1]

    yield open_remote
    for one in opened:
        one.close()


def states(models):
    return {one.name: one.status for one in models.models()}


def test_each_model_answers_through_its_own_client(toys, remote):
    with Served(toys, "first", "second") as served:
        served.wait_loaded("first", "second")
        models = remote(served)
        assert models.primary == "first"
        for name in ("first", "second"):
            client = models.client(name)
            wait_until(lambda name=name: not models.awaits(name))
            assert client.snapshot().model.name == name
            drain_all(client, client.submit(ask(max_tokens=4, ignore_eos=True)))
            totals = served.models.find(name).engine.snapshot().totals
            assert totals.generation_tokens == 4
        assert models.client("nowhere") is models.client("first")


def test_a_model_that_is_not_loaded_is_loaded_when_it_is_awaited(tmp_path, remote):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, load_gates={"second": gate})
    with Served(toys, "first", max_loaded=2, any_installed=True) as served:
        served.wait_loaded("first")
        models = remote(served)
        assert set(states(models)) >= {"first", "second", "third"}
        assert states(models)["second"] == EngineState.UNLOADED
        assert models.has("second")
        assert models.awaits("second")
        client = models.client("second")
        wait_until(lambda: states(models)["second"] == EngineState.LOADING)
        wait_until(lambda: client.snapshot().state is EngineState.LOADING)
        gate.release()
        wait_until(lambda: not models.awaits("second"))
        drain_all(client, client.submit(ask(max_tokens=2)))


def test_a_model_that_the_server_has_not_opened_is_unloaded_and_not_failed(toys, remote):
    with Served(toys, "first", max_loaded=2, any_installed=True) as served:
        served.wait_loaded("first")
        models = remote(served)
        models.models()
        client = models.client("second")
        wait_until(lambda: client.snapshot().state is not EngineState.LOADING)
        assert client.snapshot().state is EngineState.UNLOADED
        assert client.snapshot().on_demand == "second"


def test_a_load_that_fails_says_why(toys, remote):
    with Served(toys, "first", max_loaded=2, any_installed=True) as served:
        served.wait_loaded("first")
        models = remote(served)
        models.models()
        toys.failing.add("second")
        errors = []

        def raised():
            try:
                models.awaits("second")
            except EngineUnavailable as error:
                errors.append(str(error))
            return errors

        wait_until(raised)
        assert "damaged" in errors[0]


def test_models_are_unloaded_and_loaded_again_by_name(toys, remote):
    with Served(toys, "first", "second") as served:
        served.wait_loaded("first", "second")
        models = remote(served)
        models.unload("second")
        wait_until(lambda: states(models)["second"] == EngineState.UNLOADED)
        client = models.client("second")
        wait_until(lambda: client.snapshot().on_demand == "second")
        models.load("second")
        wait_until(lambda: states(models)["second"] == EngineState.READY)
        models.reload("second")
        wait_until(lambda: toys.loads.count("second") == 3)
        with pytest.raises(ModelNotFound):
            models.load("nowhere")


def test_nothing_waits_for_a_server_that_is_away():
    models = RemoteModelSet("http://127.0.0.1:9", api_key=None, names=("first", "second"))
    try:
        wait_until(lambda: models.client("second").snapshot().state is EngineState.FAILED)
        assert not models.awaits("second")
        assert models.client("second").snapshot().last_error
    finally:
        models.close()


def test_a_message_to_one_of_several_models_is_refused_while_the_server_is_away(tmp_path):
    models = RemoteModelSet("http://127.0.0.1:9", api_key=None, names=("first", "second"))
    store = Store.open(tmp_path / "conversations.db")
    client = SeveralModelsClient(models)
    session = TreeSession(store, as_client(client), models=models, background=True)
    client.follow(lambda: session.model.current)
    try:
        wait_until(lambda: client.snapshot().state is EngineState.FAILED)
        with pytest.raises(EngineUnavailable, match="Trying again"):
            session.messages.send("hello")
        assert session.path() == []
    finally:
        session.close()
        models.close()
        store.close()
