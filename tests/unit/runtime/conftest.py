"""Engines that the tests of `engine.runtime` share."""

import threading

import pytest

from tests.fakes.toy_engine import toy_engine


@pytest.fixture
def gated():
    """An engine whose executor waits for a permit before each step."""
    engine, executor = toy_engine()
    executor.gate = threading.Semaphore(0)
    engine.start()
    engine.wait_ready(30)
    yield engine, executor
    executor.gate.release(10**4)
    engine.shutdown()
