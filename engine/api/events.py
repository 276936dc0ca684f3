"""`EventBus`: publish/subscribe for request and engine events. No event per token or per step.

Events of blocks are published per request, or as sums over a period (`engine.runtime.pool_events`).

A subscriber is called on the publishing thread (the submitter's for `RequestQueued`, the engine's for
the others) and must return immediately. Its exceptions are logged and do not reach the engine.
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
    """Base of all events.

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
    """A request was admitted to a row: for the first time, or again after a preemption (`resumed`)."""

    request_id: str
    resumed: bool


@dataclass(frozen=True, slots=True)
class PrefixHit(Event):
    """An admitted request starts with KV that was found in the pool.

    Attributes:
        tokens: tokens that need not be computed.
        blocks: blocks shared with the cache or with other requests.
        copied_block: the new block that a partly used one was copied into, or None.
    """

    request_id: str
    tokens: int
    blocks: int
    copied_block: int | None


@dataclass(frozen=True, slots=True)
class RequestForked(Event):
    """An admitted request starts with the blocks of a running one, its parent.

    The parent is that of a fork, or a request with the same leading tokens.

    Attributes:
        tokens: tokens that the two have in common and that need not be computed.
        blocks: blocks that both hold.
        copied_block: the new block that the parent's partly used one was copied into, or None.
    """

    request_id: str
    parent_id: str
    tokens: int
    blocks: int
    copied_block: int | None


@dataclass(frozen=True, slots=True)
class BlocksSwappedIn(Event):
    """Blocks of an admitted request were copied from the swap tier into the pool."""

    request_id: str
    blocks: int


@dataclass(frozen=True, slots=True)
class BlocksSwappedOut(Event):
    """Blocks were copied into the swap tier since the last such event."""

    blocks: int


@dataclass(frozen=True, slots=True)
class BlocksEvicted(Event):
    """Cached blocks were evicted from the pool since the last such event.

    Attributes:
        dropped: how many of them the swap tier could not save in time.
    """

    blocks: int
    dropped: int


@dataclass(frozen=True, slots=True)
class PrefixPinned(Event):
    """A prefix was pinned.

    Attributes:
        tokens: tokens that the pin was made for.
        blocks: blocks that it covers: those that were cached and that the share of pins allows.
    """

    pin_id: str
    tokens: int
    blocks: int


@dataclass(frozen=True, slots=True)
class PrefixUnpinned(Event):
    """A pin ended.

    Attributes:
        blocks: blocks that it covered.
        dropped: whether it was dropped because a request needed the blocks.
    """

    pin_id: str
    blocks: int
    dropped: bool


@dataclass(frozen=True, slots=True)
class FirstToken(Event):
    """A request's first token was sampled, `ttft` seconds after it was queued."""

    request_id: str
    ttft: float


@dataclass(frozen=True, slots=True)
class RequestPreempted(Event):
    """A request was preempted and waits again; its `num_tokens` tokens are kept.

    Attributes:
        swapped: whether its blocks are saved to the swap tier when they are evicted; otherwise they are
            computed again.
    """

    request_id: str
    num_tokens: int
    swapped: bool


@dataclass(frozen=True, slots=True)
class RequestFinished(Event):
    """A request finished, with any finish reason."""

    request_id: str
    reason: FinishReason
    prompt_tokens: int
    output_tokens: int
    timings: Timings
    error: str | None


@dataclass(frozen=True, slots=True)
class StepFailed(Event):
    """A step raised; its requests failed and the engine continues."""

    error: str
    requests: int


@dataclass(frozen=True, slots=True)
class EngineStateChanged(Event):
    """The engine's state changed."""

    state: EngineState
    error: str | None = None


EVENT_TYPES: tuple[type[Event], ...] = (
    RequestQueued,
    RequestScheduled,
    PrefixHit,
    RequestForked,
    BlocksSwappedIn,
    BlocksSwappedOut,
    BlocksEvicted,
    PrefixPinned,
    PrefixUnpinned,
    FirstToken,
    RequestPreempted,
    RequestFinished,
    StepFailed,
    EngineStateChanged,
)
"""Every type of event."""

E = TypeVar("E", bound=Event)


class EventBus:
    """Delivers events to the subscribers of their type. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: dict[type[Event], tuple[Callable[[Event], None], ...]] = {}

    def subscribe(self, kind: type[E], callback: Callable[[E], None]) -> Callable[[], None]:
        """Call `callback` with every event of exactly this type, not of its subclasses.

        Returns:
            A function that ends the subscription; idempotent.
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

    def has_subscribers(self, kind: type[Event]) -> bool:
        """Whether the type has subscribers: checked on hot paths before an event is built."""
        return bool(self._subscribers.get(kind))

    def publish(self, event: Event) -> None:
        """Deliver an event to its subscribers, in the order of subscription."""
        for deliver in self._subscribers.get(type(event), ()):
            try:
                deliver(event)
            except Exception:
                _log.exception("A subscriber to %s failed.", type(event).__name__)
