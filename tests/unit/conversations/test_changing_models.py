"""Models that are unloaded, loaded anew or chosen while an answer with tools is under way."""

import threading
from concurrent.futures import Future
from dataclasses import replace

import pytest

from engine.api.tools import CallResult, CallState, ToolCall, ToolRound
from engine.clients.served_model_set import ServedModelSet
from engine.clients.several_models_client import SeveralModelsClient, as_client
from engine.conversations import submission
from engine.conversations.session import TreeSession
from tests.fakes.fake_passages import FakePassages
from tests.fakes.toy_model_set import NamedClient, ToyModelSet
from tests.fakes.toy_models import ToyModels
from tests.server.byte_engine import wait_until
from tests.unit.conversations.test_tool_answers import CALL, MEASURED, Tools


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


def test_results_are_answered_by_the_model_that_asked_for_them(store, tools):
    made = Future()
    tools.act = lambda calls: made
    big, small = NamedClient("big", CALL, "Seven."), NamedClient("small", "Eight.")
    session = open_session(store, ToyModelSet(big, small), tools)
    session.messages.send("How many lines?")
    session.pump()
    big.finish()
    session.pump()
    session.model.choose("small")
    made.set_result(ToolRound([CallResult(ToolCall("c", "read", "{}"), "7", CallState.OK)], True))
    for _ in range(3):
        session.pump()
    assert small.requests == []
    assert session.model.current == "small"
    big.finish()
    session.pump()
    assert session.path()[-1].text == "Seven."
    assert session.model.current == "small"
    session.messages.send("And now?")
    session.pump()
    small.finish()
    session.pump()
    assert (session.path()[-1].text, session.path()[-1].model) == ("Eight.", "small")


def test_citations_are_checked_for_the_model_that_answers(store, monkeypatch):
    big, small = NamedClient("big"), NamedClient("small")
    models, source = ToyModelSet(big, small), FakePassages()
    checked = []
    begin_check = source.begin_check

    def begin(found, question, *, earlier, model):
        checked.append(model.name)
        return begin_check(found, question, earlier=earlier, model=model)

    monkeypatch.setattr(source, "begin_check", begin)
    client = SeveralModelsClient(models)
    session = TreeSession(store, as_client(client), models=models, passages=source)
    client.follow(lambda: session.model.current)
    session.sources.attach("docs")
    session.messages.send("where?")
    source.searches[0].finish("Here.")
    session.pump()
    session.branches.expand(2, model="small")
    assert checked == ["big", "small", "small"]
