"""Sessions of coding agents, replayed in a small form: what is read again at the borders of their turns."""

import numpy as np
import pytest

from tests.fakes.toy_executor import ToyExecutor
from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.traces.replay import SMALL, Replay, load, names

BLOCK = 4
RATIO = 1.05
"""Tokens computed over tokens that are new."""


@pytest.fixture
def server(monkeypatch):
    # The grammar alone decides each token here.
    monkeypatch.setattr(ToyExecutor, "_logits", lambda self, *_: np.zeros(self.vocab_size, "f4"))
    with (
        byte_engine(context=32_768, blocks=40_000, block_size=BLOCK) as engine,
        live(engine) as running,
    ):
        yield running


@pytest.mark.parametrize("name", names())
def test_a_trace_is_read_once(server, name):
    costs = Replay(load(name), server, SMALL).run()
    assert 10 <= len(costs) <= 30
    assert sum(one.computed for one in costs) <= RATIO * sum(one.new for one in costs)
