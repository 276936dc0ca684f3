"""`Lifecycle`: the state of an engine, and the errors that callers get in each state.

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
        lock: held while the state changes; hold it to keep the state from changing.
        state: the current state.
        error: why the engine failed and the instant, or None.
    """

    def __init__(self, *, events: EventBus, clock: Callable[[], float]) -> None:
        """Start in `loading`; publish state changes through `events`."""
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
        """Change the state; does nothing if the current state is not in `only_from`."""
        with self.lock:
            if self.state not in only_from or self.state is state:
                return
            self.state = state
        self._events.publish(EngineStateChanged(self._clock(), state, error))

    def fail(self, error: str) -> None:
        """Change to `failed`; `error` is the message callers get."""
        self.error = (error, self._clock())
        self.move_to(EngineState.FAILED, error=error)

    def require(self, *states: EngineState) -> None:
        """Check that the engine is in one of `states`.

        Raises:
            EngineUnavailable: it is in another state; the message says which.
        """
        if self.state not in states:
            raise self.unavailable()

    def unavailable(self) -> EngineUnavailable:
        """The exception that says why the engine cannot be used now; the caller raises it."""
        if self.state is EngineState.FAILED and self.error is not None:
            return EngineUnavailable(self.error[0])
        if self.state is EngineState.DRAINING:
            return EngineUnavailable("The engine is shutting down and takes no new requests.")
        if self.state is EngineState.LOADING:
            return EngineUnavailable("The model is still loading.")
        return EngineUnavailable("The engine has stopped.")
