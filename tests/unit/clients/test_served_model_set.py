"""The models of this process: each through its own client, loaded on demand, reloaded without a loss."""

import threading
from contextlib import contextmanager

import pytest

from engine.api.errors import EngineUnavailable, ModelError, ModelNotFound, PravahaError
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.clients.served_model_set import ServedModelSet
from tests.fakes.toy_engine import ask
from tests.fakes.toy_models import PATIENCE_S, ToyModels
from tests.server.byte_engine import wait_until


@pytest.fixture
def toys(tmp_path):
    return ToyModels(tmp_path)


@contextmanager
def opened(toys, *names, **options):
    models = toys.served(*names, **{"any_installed": True} | options)
    found = ServedModelSet(models)
    models.start()
    try:
        for name in names[: models.max_loaded]:
            wait_until(lambda name=name: not found.awaits(name))
        yield found
    finally:
        found.close()


def drained(client, request_id):
    """All tokens of a request, and why it finished."""
    tokens = []
    last = None

    def is_finished():
        nonlocal last
        batch = client.drain(request_id)
        if batch is not None:
            tokens.extend(batch.token_ids)
            last = batch.finish_reason
        return last is not None

    wait_until(is_finished)
    return tokens, last


def states(models):
    return {one.name: one.status for one in models.models()}


def test_each_model_has_a_client_of_its_own(toys):
    with opened(toys, "first", "second") as models:
        assert models.primary == "first"
        for name in ("first", "second"):
            client = models.client(name)
            assert client is models.client(name)
            assert client.snapshot().model.name == name
            request_id = client.submit(ask([1, 2, 3], max_tokens=4))
            assert len(drained(client, request_id)[0]) == 4
            assert client.snapshot().totals.generation_tokens == 4
        assert models.client(None) is models.client("nowhere") is models.client("first")


def test_models_are_listed_with_state_and_memory(toys):
    with opened(toys, "first") as models:
        listed = {one.name: one for one in models.models()}
        assert list(listed) == ["first", "broken", "second", "third"]
        assert listed["first"].status == EngineState.READY
        assert listed["first"].memory_bytes > 0
        assert not listed["first"].problem
        assert listed["second"].status == EngineState.UNLOADED
        assert listed["second"].memory_bytes == 0
        assert "damaged" in listed["broken"].problem
        assert models.has("third")


def test_a_model_is_loaded_when_it_is_awaited_and_shows_its_progress(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, load_gates={"second": gate})
    with opened(toys, "first", max_loaded=2) as models:
        models.models()
        client = models.client("second")
        assert client.snapshot().state is EngineState.UNLOADED
        assert client.snapshot().on_demand == "second"
        with pytest.raises(EngineUnavailable):
            client.submit(ask([1]))
        assert models.awaits("second")
        wait_until(lambda: client.snapshot().loading_progress == 0.5)
        assert client.snapshot().state is EngineState.LOADING
        (row,) = [one for one in models.refreshed(models.models()) if one.name == "second"]
        assert (row.status, row.loading_progress) == ("loading", 0.5)
        gate.release()
        wait_until(lambda: not models.awaits("second"))
        assert states(models)["first"] == EngineState.READY


def test_a_load_that_fails_is_raised_once_and_tried_again(toys):
    with opened(toys, "first", max_loaded=2) as models:
        models.models()
        toys.failing.add("second")

        errors = []

        def raised():
            try:
                models.awaits("second")
            except PravahaError as error:
                errors.append(str(error))
            return errors

        wait_until(raised)
        assert "damaged" in errors[0]
        toys.failing.clear()
        wait_until(lambda: not models.awaits("second"))


def test_room_is_made_without_dropping_a_running_answer(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, gates={"first": gate})
    with opened(toys, "first", max_loaded=1) as models:
        models.models()
        first = models.client("first")
        request_id = first.submit(ask([1, 2, 3], max_tokens=4))
        assert models.awaits("second")
        for _ in range(10):
            gate.release()
        tokens, reason = drained(first, request_id)
        assert (len(tokens), reason) == (4, FinishReason.LENGTH)
        wait_until(lambda: not models.awaits("second"))
        assert states(models)["first"] == EngineState.UNLOADED


def test_a_model_whose_output_is_not_read_yet_is_not_unloaded(toys):
    with opened(toys, "first", max_loaded=1) as models:
        models.models()
        first = models.client("first")
        request_id = first.submit(ask([1, 2, 3], max_tokens=4))
        assert models.awaits("second")
        tokens, reason = drained(first, request_id)
        assert (len(tokens), reason) == (4, FinishReason.LENGTH)


def test_a_reload_leaves_running_requests_their_engine(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, gates={"second": gate})
    with opened(toys, "first", "second", total_memory=2**40) as models:
        client = models.client("second")
        woken = threading.Event()
        client.on_wake(woken.set)
        request_id = client.submit(ask([1, 2, 3], max_tokens=4))
        models.reload("second")
        wait_until(lambda: toys.loads.count("second") == 2)
        for _ in range(30):
            gate.release()
        tokens, reason = drained(client, request_id)
        assert (len(tokens), reason) == (4, FinishReason.LENGTH)
        wait_until(lambda: not models.awaits("second"))
        woken.clear()
        later = client.submit(ask([1, 2, 3], max_tokens=2))
        assert len(drained(client, later)[0]) == 2
        assert woken.is_set()


def test_an_unload_waits_for_running_answers_and_shows_it(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, gates={"second": gate})
    with opened(toys, "first", "second") as models:
        client = models.client("second")
        request_id = client.submit(ask([1, 2, 3], max_tokens=4))
        models.unload("second")
        wait_until(lambda: states(models)["second"] == EngineState.DRAINING)
        for _ in range(30):
            gate.release()
        tokens, reason = drained(client, request_id)
        assert (len(tokens), reason) == (4, FinishReason.LENGTH)
        wait_until(lambda: states(models)["second"] == EngineState.UNLOADED)


def test_unload_and_load_by_name(toys):
    with opened(toys, "first", "second") as models:
        models.unload("second")
        wait_until(lambda: states(models)["second"] == EngineState.UNLOADED)
        models.load("second")
        wait_until(lambda: states(models)["second"] == EngineState.READY)
        with pytest.raises(ModelNotFound):
            models.load("nowhere")
        with pytest.raises(ModelError):
            models.load("broken")


def test_waking_reaches_clients_that_are_made_later(toys):
    with opened(toys, "first", "second") as models:
        woken = threading.Event()
        models.on_wake(woken.set)
        client = models.client("second")
        woken.clear()
        client.submit(ask([1, 2, 3], max_tokens=1))
        assert woken.wait(PATIENCE_S)
