"""`Lifecycle`: which state an engine is in, and what it says to whoever comes at the wrong time.

loading ──▶ ready ──▶ draining ──▶ stopped
└─────────────────────▲
any of the first three ──▶ failed
"""

import threading
from collections.abc import Callable

from engine.api.errors import EngineUnavailable
from engine.api.events import EngineStateChanged, EventBus
from engine.api.snapshot import EngineState


class Lifecycle:
    """The state of one engine. Any thread.

    Attributes:
        lock: held while the state changes; whoever holds it knows that it does not.
        state: where the engine is.
        error: why it failed, with the instant, or None.
    """

    def __init__(self, *, events: EventBus, clock: Callable[[], float]) -> None:
        """Begin with loading; tell of changes through `events`."""
        self.lock = threading.Lock()
        self.state = EngineState.LOADING
        self.error: tuple[str, float] | None = None
        self._events = events
        self._clock = clock

    def move_to(
        self,
        state: EngineState,
        *,
        only_from: tuple[EngineState, ...] = tuple(EngineState),
        error: str | None = None,
    ) -> None:
        """Move to a state; nothing happens from a state that is not in `only_from`."""
        with self.lock:
            if self.state not in only_from or self.state is state:
                return
            self.state = state
        self._events.publish(EngineStateChanged(self._clock(), state, error))

    def fail(self, error: str) -> None:
        """The engine cannot go on, and `error` is the sentence that says why."""
        self.error = (error, self._clock())
        self.move_to(EngineState.FAILED, error=error)

    def require(self, *states: EngineState) -> None:
        """Refuse a caller in any other state.

        Raises:
            EngineUnavailable: with the reason.
        """
        if self.state not in states:
            raise self.unavailable()

    def unavailable(self) -> EngineUnavailable:
        """Why the engine cannot be used now, to be raised."""
        if self.state is EngineState.FAILED and self.error is not None:
            return EngineUnavailable(self.error[0])
        if self.state is EngineState.DRAINING:
            return EngineUnavailable("The engine is shutting down and takes no new requests.")
        if self.state is EngineState.LOADING:
            return EngineUnavailable("The model is still loading.")
        return EngineUnavailable("The engine has stopped.")
