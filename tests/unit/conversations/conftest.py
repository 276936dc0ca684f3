"""A store in a folder of the test, and a client whose answers the test writes."""

import pytest

from engine.conversations.store import Store
from tests.fakes.chat_toys import ToyClient


@pytest.fixture
def store(tmp_path):
    store = Store.open(tmp_path / "conversations.db")
    yield store
    store.close()


@pytest.fixture
def client():
    return ToyClient()
