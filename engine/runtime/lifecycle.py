"""`Lifecycle`: the state of an engine, and the errors that callers get in each state.

loading ──▶ ready ──▶ draining ──▶ stopped
└─────────────────────▲
any of the first three ──▶ failed
loading ──▶ unloaded, if there is no model or it cannot be loaded

A change of the model (`begin_change`):

ready ──▶ draining ──▶ loading ──▶ ready
   unloaded ──▶ loading ──┘  └──▶ unloaded, if it cannot be loaded or none is to be
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
        error: why the engine failed, or why the last model could not be loaded, and the instant; or None.
        next_model: the model that the engine is changing to, or None.
        closing: whether `drain` was called, after which no model is loaded any more.
    """

    def __init__(self, *, events: EventBus, clock: Callable[[], float]) -> None:
        """Start in `loading`; publish state changes through `events`."""
        self.lock = threading.Lock()
        self.state = EngineState.LOADING
        self.error: tuple[str, float] | None = None
        self.next_model: str | None = None
        self.closing = False
        self._unloading = False
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

    def begin_change(self, next_model: str | None) -> None:
        """Change to `draining` until the model is replaced by `next_model`, or unloaded if it is None.

        Raises:
            EngineUnavailable: another change is in progress, or the engine is shutting down.
        """
        with self.lock:
            self.require(EngineState.READY, EngineState.UNLOADED)
            self.next_model, self._unloading = next_model, next_model is None
            changed = self.state is EngineState.READY
            if changed:
                self.state = EngineState.DRAINING
        if changed:
            self._events.publish(EngineStateChanged(self._clock(), EngineState.DRAINING, None))

    def begin_loading(self) -> bool:
        """Change to `loading` for the next model; the last error no longer applies.

        Returns:
            False if the engine is shutting down; nothing was changed.
        """
        with self.lock:
            if self.closing:
                return False
            self.error, self.state = None, EngineState.LOADING
        self._events.publish(EngineStateChanged(self._clock(), EngineState.LOADING, None))
        return True

    def finish_loading(self) -> None:
        """Change to `ready`, unless the engine is shutting down."""
        self.next_model = None
        self.move_to(EngineState.READY, only_from=(EngineState.LOADING,))

    def drain(self) -> None:
        """Change to `draining` for good: the engine is shutting down. A pending change is dropped."""
        with self.lock:
            self.closing = True
            self.next_model, self._unloading = None, False
        self.move_to(
            EngineState.DRAINING,
            only_from=(EngineState.LOADING, EngineState.READY, EngineState.UNLOADED),
        )

    def unload(self, error: str | None) -> None:
        """Change to `unloaded`; `error` says why the model could not be loaded, None if none was to be.

        Does nothing if the engine is shutting down.
        """
        with self.lock:
            if self.closing:
                return
            self.error = None if error is None else (error, self._clock())
            self.next_model, self._unloading = None, False
            self.state = EngineState.UNLOADED
        self._events.publish(EngineStateChanged(self._clock(), EngineState.UNLOADED, error))

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
        if self.state is EngineState.UNLOADED:
            return EngineUnavailable(self.error[0] if self.error else "No model is loaded.")
        if self.next_model is not None:
            return EngineUnavailable(
                f"The engine is changing its model to {self.next_model}: wait until it is loaded."
            )
        if self._unloading:
            return EngineUnavailable("The engine is unloading its model.")
        if self.state is EngineState.DRAINING:
            return EngineUnavailable("The engine is shutting down and takes no new requests.")
        if self.state is EngineState.LOADING:
            return EngineUnavailable("The model is still loading.")
        return EngineUnavailable("The engine has stopped.")
