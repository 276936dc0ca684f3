"""A session whose requests are submitted in the background: no call of it waits for the engine's server."""

import threading
from functools import partial

import pytest

from engine.api.errors import EngineUnavailable, QueueFull, UnknownRequest
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeStatus
from tests.fakes.chat_toys import ToyClient
from tests.server.byte_engine import wait_until

ROUND_TRIPS = ("submit", "fork")


class RemoteClient:
    """A toy client whose round trips record their thread and wait while `gate` is closed."""

    def __init__(self):
        self.toy = ToyClient()
        self.gate = threading.Event()
        self.gate.set()
        self.threads = set()

    def __getattr__(self, name):
        found = getattr(self.toy, name)
        return partial(self._round_trip, found) if name in ROUND_TRIPS else found

    def _round_trip(self, call, *args, **options):
        self.threads.add(threading.current_thread())
        assert self.gate.wait(30)
        return call(*args, **options)


@pytest.fixture
def client():
    client = RemoteClient()
    yield client
    client.gate.set()


@pytest.fixture
def session(tmp_path, client):
    store = Store.open(tmp_path / "conversations.db")
    session = TreeSession(store, client, background=True)
    yield session
    client.gate.set()
    session.close()
    store.close()


def pumped(session, ready):
    """Pump until something is true; all deltas."""
    deltas = []

    def try_once():
        deltas.extend(session.pump())
        return ready()

    wait_until(try_once)
    return deltas


def test_a_message_is_shown_at_once_and_sent_on_another_thread(session, client):
    client.gate.clear()
    session.messages.send("hello")
    assert [view.text for view in session.path()] == ["hello", ""]
    assert session.answers.generating
    assert session.pump() == []
    client.gate.set()
    pumped(session, lambda: session.answers.request_id is not None)
    client.toy.write("hi", eos=True)
    assert [delta.text for delta in session.pump()] == ["hi"]
    session.messages.send("and more")  # the answer's ids are part of the next prompt
    pumped(session, lambda: session.answers.request_id is not None)
    client.toy.write("yes", eos=True)
    session.pump()
    assert [view.text for view in session.path()] == ["hello", "hi", "and more", "yes"]
    assert threading.current_thread() not in client.threads


def test_prompts_are_those_of_a_session_in_the_foreground(tmp_path, session, client):
    store = Store.open(tmp_path / "other.db")
    plain = ToyClient()
    foreground = TreeSession(store, plain)
    for number, text in enumerate(("one", "two", "three")):
        session.messages.send(text)
        foreground.messages.send(text)
        pumped(session, lambda: session.answers.request_id is not None)
        for toy, one in ((client.toy, session), (plain, foreground)):
            toy.write(f"answer {number}", eos=True)
            one.pump()
    assert [r.prompt_ids for r in client.toy.requests] == [r.prompt_ids for r in plain.requests]
    foreground.close()
    store.close()


def test_a_refusal_ends_the_answer_with_its_reason(session, client):
    client.toy.refuse = QueueFull("The queue is full.")
    session.messages.send("hello")
    deltas = pumped(session, lambda: not session.answers.generating)
    assert [(one.status, one.error) for one in deltas] == [(NodeStatus.ERROR, "The queue is full.")]
    client.toy.refuse = None
    session.branches.regenerate()
    pumped(session, lambda: session.answers.request_id is not None)
    client.toy.write("hi", eos=True)
    session.pump()
    assert [view.text for view in session.path()] == ["hello", "hi"]


def test_what_was_sent_during_a_load_that_fails_waits_for_another_model(session, client):
    client.toy.state = EngineState.LOADING
    session.messages.send("hello")
    client.toy.state = EngineState.UNLOADED
    assert session.pump() == []
    session.conversations.open_new()
    with pytest.raises(EngineUnavailable):
        session.messages.send("another")
    client.toy.state = EngineState.READY
    pumped(session, lambda: len(client.toy.requests) == 1)


def test_a_message_for_an_engine_that_is_away_is_refused_at_once(session, client):
    client.toy.state = EngineState.FAILED
    with pytest.raises(EngineUnavailable):
        session.messages.send("hello")
    assert session.path() == []


def test_an_answer_stopped_before_it_was_sent_is_cancelled_when_it_is(session, client):
    client.gate.clear()
    session.messages.send("hello")
    session.answers.stop()
    (delta,) = session.pump()
    assert (delta.status, delta.finish) == (NodeStatus.STOPPED, FinishReason.ABORT.value)
    client.gate.set()
    pumped(session, lambda: client.toy.cancelled)
    assert client.toy.cancelled == [client.toy.requests[0].request_id]


def test_several_answers_are_submitted_together(session, client):
    session.messages.send("hello")
    pumped(session, lambda: session.answers.request_id is not None)
    client.toy.write("hi", eos=True)
    session.pump()
    session.branches.expand(3, session.path()[0].id)
    pumped(
        session,
        lambda: len(session.answers.running) == 3 and session.answers.request_id is not None,
    )
    assert threading.current_thread() not in client.threads


def test_answers_beside_one_that_has_finished_already_are_submitted_anew(session, client):
    session.messages.send("hello")
    pumped(session, lambda: session.answers.request_id is not None)
    client.toy.write("hi", eos=True)
    session.pump()

    def finished(*args, **options):
        raise UnknownRequest("No live request has the id.")

    client.toy.fork = finished
    session.sampling.change({"seed": 7})
    session.branches.expand(3, session.path()[0].id)
    pumped(session, lambda: len(client.toy.requests) == 4)
    assert len({one.prompt_ids for one in client.toy.requests[1:]}) == 1
    assert len({one.sampling.seed for one in client.toy.requests[1:]}) == 3
