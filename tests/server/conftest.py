"""One real engine and one server over it for all tests that only send requests."""

import httpx
import pytest

from tests.server.byte_engine import byte_engine
from tests.server.live import live


@pytest.fixture(scope="session")
def engine():
    with byte_engine() as running:
        yield running


@pytest.fixture(scope="session")
def server(engine):
    with live(engine) as running:
        yield running


@pytest.fixture(scope="session")
def client(server):
    with httpx.Client(base_url=server.url, timeout=60) as http:
        yield http
