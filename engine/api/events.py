"""`EventBus`: facts about the engine, for whoever wants to know. No event per token or per step.

A subscriber is called on the thread where the fact occurred (the submitter's for `RequestQueued`,
the engine's for the others) and must return at once. It cannot harm the engine: what it raises is
logged.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from engine.api.request import FinishReason, Timings
from engine.api.snapshot import EngineState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """A fact.

    Attributes:
        time: monotonic seconds.
    """

    time: float


@dataclass(frozen=True, slots=True)
class RequestQueued(Event):
    """A request was accepted."""

    request_id: str
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class RequestScheduled(Event):
    """A request got a row: for the first time, or again after a preemption."""

    request_id: str
    resumed: bool


@dataclass(frozen=True, slots=True)
class FirstToken(Event):
    """A request's first token was sampled."""

    request_id: str
    ttft: float


@dataclass(frozen=True, slots=True)
class RequestPreempted(Event):
    """A request lost its row and waits again; its tokens are kept."""

    request_id: str
    known_tokens: int


@dataclass(frozen=True, slots=True)
class RequestFinished(Event):
    """A request ended, for whatever reason."""

    request_id: str
    reason: FinishReason
    prompt_tokens: int
    output_tokens: int
    timings: Timings
    error: str | None


@dataclass(frozen=True, slots=True)
class StepFailed(Event):
    """A step raised; its requests failed and the engine goes on."""

    error: str
    requests: int


@dataclass(frozen=True, slots=True)
class EngineStateChanged(Event):
    """The engine's state changed."""

    state: EngineState
    error: str | None = None


E = TypeVar("E", bound=Event)


class EventBus:
    """Delivers events to subscribers, by type. Any thread may subscribe and publish."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: dict[type[Event], tuple[Callable[[Event], None], ...]] = {}

    def subscribe(self, kind: type[E], callback: Callable[[E], None]) -> Callable[[], None]:
        """Call `callback` with every event of exactly this type.

        Returns:
            A function that ends the subscription; calling it twice does nothing.
        """

        def deliver(event: Event) -> None:
            callback(event)  # type: ignore[arg-type]  # filed under its own type

        with self._lock:
            self._subscribers[kind] = (*self._subscribers.get(kind, ()), deliver)

        def unsubscribe() -> None:
            with self._lock:
                others = tuple(each for each in self._subscribers[kind] if each is not deliver)
                self._subscribers[kind] = others

        return unsubscribe

    def wanted(self, kind: type[Event]) -> bool:
        """Whether anybody listens: a hot path asks before it builds an event."""
        return bool(self._subscribers.get(kind))

    def publish(self, event: Event) -> None:
        """Deliver an event to its subscribers, in the order in which they came."""
        for deliver in self._subscribers.get(type(event), ()):
            try:
                deliver(event)
            except Exception:
                _log.exception("A subscriber to %s failed.", type(event).__name__)
