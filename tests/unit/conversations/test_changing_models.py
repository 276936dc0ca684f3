"""Models that are unloaded, loaded anew or chosen while an answer with tools is under way."""

import threading
from dataclasses import replace

import pytest

from engine.clients.served_model_set import ServedModelSet
from engine.clients.several_models_client import SeveralModelsClient, as_client
from engine.conversations import submission
from engine.conversations.session import TreeSession
from tests.fakes.toy_models import ToyModels
from tests.server.byte_engine import wait_until
from tests.unit.conversations.test_tool_answers import MEASURED, Tools


@pytest.fixture
def tools():
    return Tools()


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.setattr(submission, "call_thresholds", lambda info, tokenizer: MEASURED)


def open_session(store, models, tools):
    client = SeveralModelsClient(models)
    session = TreeSession(store, as_client(client), models=models, tools=tools)
    client.follow(lambda: session.model.current)
    return session


class LongModels(ToyModels):
    """Toy models whose context has room for the offer of a tool."""

    def config(self, name, **settings):
        return super().config(name, blocks=1024, **settings)

    def _open(self, config):
        opened = super()._open(config)
        opened.spec = replace(opened.spec, context_length=4096)
        return opened


@pytest.mark.parametrize("change", ["unload", "reload"])
def test_a_model_that_is_changed_while_an_answer_decides_decides_and_answers(
    measured, tmp_path, store, tools, change
):
    gate = threading.Semaphore(0)
    toys = LongModels(tmp_path, gates={"second": gate})
    served = toys.served("first", "second", any_installed=True)
    models = ServedModelSet(served)
    served.start()
    try:
        for name in ("first", "second"):
            wait_until(lambda name=name: not models.awaits(name))
        session = open_session(store, models, tools)
        session.model.choose("second")
        session.sampling.change({"max_tokens": 2})
        session.messages.send("hi")

        def pumped(condition):
            session.pump()
            return condition()

        wait_until(lambda: pumped(lambda: session.answers.request_id is not None))
        getattr(models, change)("second")
        for _ in range(10_000):
            gate.release()
        wait_until(lambda: pumped(lambda: not session.answers.running))
        assert session.path()[-1].error is None
        assert toys.loads.count("second") == 2
    finally:
        models.close()
