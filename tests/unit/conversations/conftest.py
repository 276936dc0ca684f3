"""A store in a folder of the test, and a client whose answers the test writes."""

import pytest

from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from tests.fakes.chat_toys import ToyClient
from tests.unit.conversations.talking import Clock


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data" / "conversations.db"


@pytest.fixture
def store(tmp_path):
    store = Store.open(tmp_path / "conversations.db")
    yield store
    store.close()


@pytest.fixture
def client():
    return ToyClient()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def session(store, client, clock):
    return TreeSession(store, client, clock=clock)
