"""What the pipeline takes from the settings and the opened model."""

import time

import pytest

from engine.api.events import EventBus
from engine.api.scheduling import Scheduling
from engine.batch.request_queue import RequestQueue
from engine.observability.counters import EngineCounters
from engine.runtime.assembly import build_pipeline, build_pool, rust_pool
from engine.runtime.loading import open_with_headers
from tests.fakes.toy_engine import toy_config
from tests.fakes.toy_executor import toy_model


@pytest.mark.parametrize(
    ("setting", "uses_graphs", "speculates"),
    [
        (None, False, True),
        (None, True, False),
        (True, True, True),
        (True, False, True),
        (False, False, False),
    ],
)
def test_speculation_is_on_unless_decode_steps_are_graphs(setting, uses_graphs, speculates):
    config = toy_config(speculation=setting)
    model = toy_model(64)
    model.uses_graphs = uses_graphs
    opened = open_with_headers(config, lambda _: model)
    pipeline = build_pipeline(
        config,
        opened,
        build_pool(config, opened, rust_pool),
        RequestQueue(4),
        scheduling=Scheduling(),
        counters=EngineCounters(),
        events=EventBus(),
        clock=time.monotonic,
    )
    assert (pipeline.scheduler.speculation is not None) == speculates
