"""Events as JSON: every kind survives the way to another process."""

from dataclasses import fields

import orjson
import pytest

from engine.api.event_ring import EventBatch
from engine.api.events import (
    EVENT_TYPES,
    BlocksEvicted,
    EngineStateChanged,
    Event,
    RequestFinished,
    RequestQueued,
)
from engine.api.request import FinishReason, Timings
from engine.api.snapshot import EngineState
from engine.clients.event_wire import batch_fields, event_batch
from engine.clients.http_wire import WireError

VALUES = {"str": "r1", "int": 3, "float": 2.0, "bool": True, "int | None": 7, "str | None": None}


def example(kind):
    values = {field.name: VALUES.get(getattr(field.type, "__name__", str(field.type)))
              for field in fields(kind)}  # fmt: skip
    if kind is RequestFinished:
        values |= {"reason": FinishReason.STOP, "timings": Timings(1.0, 1.5, None, None)}
    if kind is EngineStateChanged:
        values["state"] = EngineState.READY
    return kind(**values)


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_every_kind_comes_back_equal(kind):
    batch = EventBatch((example(kind),), 5, 2)
    data = orjson.loads(orjson.dumps(batch_fields(batch)))
    assert event_batch(data, shift=0.0) == batch


def test_every_type_of_event_is_listed():
    # By name: `slots=True` makes a second class of each.
    assert {kind.__name__ for kind in EVENT_TYPES} == {
        kind.__name__ for kind in Event.__subclasses__()
    }


def test_instants_are_shifted_to_the_readers_clock():
    finished = example(RequestFinished)
    (event,) = event_batch(batch_fields(EventBatch((finished,), 1)), shift=10.0).events
    assert event.time == finished.time + 10
    assert event.timings == Timings(11.0, 11.5, None, None)


def test_kinds_of_a_newer_server_are_left_out():
    data = batch_fields(EventBatch((RequestQueued(1.0, "r", 1), BlocksEvicted(2.0, 1, 0)), 2))
    data["events"][0]["kind"] = "SomethingNew"
    assert event_batch(data, shift=0.0).events == (BlocksEvicted(2.0, 1, 0),)


@pytest.mark.parametrize("data", [{}, {"events": [{}], "next": 1, "missed": 0}])
def test_another_format_is_refused(data):
    with pytest.raises(WireError):
        event_batch(data, shift=0.0)
