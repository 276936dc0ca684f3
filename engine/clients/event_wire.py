"""Conversion of engine events to JSON and back, for `GET /events` and recordings.

An event is an object of its fields with `kind`, the name of its class. Instants are monotonic seconds of the
engine's process; a reader in another process shifts them by the difference of the clocks.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from engine.api.event_ring import EventBatch
from engine.api.events import EVENT_TYPES, EngineStateChanged, Event, RequestFinished
from engine.api.request import FinishReason, Timings
from engine.api.snapshot import EngineState
from engine.clients.http_wire import WireError

_TYPES = {kind.__name__: kind for kind in EVENT_TYPES}


def event_fields(event: Event) -> dict[str, Any]:
    """The JSON object of an event."""
    return {"kind": type(event).__name__, **asdict(event)}


def batch_fields(batch: EventBatch) -> dict[str, Any]:
    """The JSON object of a batch."""
    return {
        "next": batch.next,
        "missed": batch.missed,
        "events": [event_fields(event) for event in batch.events],
    }


def event_batch(data: Mapping[str, Any], *, shift: float) -> EventBatch:
    """A batch whose instants are shifted by `shift` seconds; events of unknown kinds are left out.

    Raises:
        WireError: members are missing or invalid.
    """
    try:
        events = [event_from(one, shift=shift) for one in data["events"] if one["kind"] in _TYPES]
        return EventBatch(tuple(events), data["next"], data["missed"])
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"The server's events are not in Pravāha's format ({error}).") from error


def event_from(data: Mapping[str, Any], *, shift: float) -> Event:
    """One event of a known kind, its instants shifted by `shift` seconds.

    Raises:
        KeyError, TypeError, ValueError: members are missing or invalid.
    """
    kind = _TYPES[data["kind"]]
    values = {field.name: data[field.name] for field in fields(kind)}
    values["time"] += shift
    if kind is RequestFinished:
        values["reason"] = FinishReason(values["reason"])
        values["timings"] = _timings(values["timings"], shift)
    if kind is EngineStateChanged:
        values["state"] = EngineState(values["state"])
    return kind(**values)


def _timings(data: Mapping[str, Any], shift: float) -> Timings:
    instants: dict[str, Any] = {
        field.name: None if data[field.name] is None else data[field.name] + shift
        for field in fields(Timings)
    }
    return Timings(**instants)
