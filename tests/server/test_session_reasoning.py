"""The screen's answers of a model that thinks, with a real engine: limited, and ended while they run."""

import pytest

from engine.api.generation_defaults import SamplingChoice
from engine.api.request import SamplingParams
from engine.clients.in_process import InProcessClient
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.thinking import Thinking
from tests.server.byte_engine import byte_engine, wait_until
from tests.server.test_reasoning import BEGUN, CLOSING


@pytest.fixture(scope="module")
def engine():
    with byte_engine(template=BEGUN, step_s=0.002) as engine:
        yield engine


@pytest.fixture
def session(engine, tmp_path):
    store = Store.open(tmp_path / "conversations.db")
    params = SamplingParams(temperature=0.0, max_tokens=200, ignore_eos=True)
    session = TreeSession(
        store, InProcessClient(engine), sampling=SamplingChoice(params), stop_repetition=False
    )
    yield session
    session.close()
    store.close()


def answer(session):
    def is_finished():
        session.pump()
        return not session.answers.generating

    wait_until(is_finished)
    return session.path()[-1]


def test_a_limit_ends_the_reasoning(session):
    session.answers.thinking = Thinking(max_tokens=5)
    session.messages.send("hi")
    node = answer(session)
    assert node.n_reasoning == 5 + CLOSING
    assert node.n_gen == 200
    assert node.text


def test_the_reasoning_of_a_running_answer_is_ended(session):
    session.messages.send("hi")

    def ended():
        session.pump()
        return session.answers.end_reasoning()

    wait_until(ended)
    node = answer(session)
    assert 0 < node.n_reasoning < 200
    assert node.text
