"""Wake-ups: notify readers of new output, at most once per step.

There is no notification per token. Coroutines of one event loop share one `call_soon_threadsafe` per
step; the loop's thread then finds the waiters with new output. Threads without a loop register a
callback.

No wake-up is lost: a reader registers and then checks again, the engine publishes and then looks for
readers, so at least one of the two sees the other.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Protocol

_log = logging.getLogger(__name__)


class WaitTarget(Protocol):
    """A request that a coroutine waits for."""

    def has_new_output(self) -> bool:
        """Whether a drain would return something."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the request finished."""
        ...


class LoopWaker:
    """The waiting coroutines of one event loop. Only the loop's thread changes the waiters."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._token_waiters: dict[WaitTarget, asyncio.Future[None]] = {}
        self._finish_waiters: dict[WaitTarget, asyncio.Future[None]] = {}
        self._signalled = False

    @property
    def closed(self) -> bool:
        """Whether the loop is closed."""
        return self._loop.is_closed()

    async def wait(self, handle: WaitTarget, *, for_finish: bool) -> None:
        """Return when the handle has new output or, with `for_finish`, when it finished."""
        waiters = self._finish_waiters if for_finish else self._token_waiters
        future = self._loop.create_future()
        waiters[handle] = future
        try:
            if not (handle.finished if for_finish else handle.has_new_output()):
                await future
        finally:
            waiters.pop(handle, None)

    def signal(self, *, finished: bool) -> None:
        """Wake the loop's waiters after a step. Engine's thread.

        Args:
            finished: whether a request finished in the step.
        """
        if self._signalled or not (self._token_waiters or (finished and self._finish_waiters)):
            return
        self._signalled = True
        try:
            self._loop.call_soon_threadsafe(self._wake_waiters)
        except RuntimeError:  # the loop was closed: there are no waiters
            self._signalled = False

    def _wake_waiters(self) -> None:
        self._signalled = False
        for handle, future in self._token_waiters.items():
            if handle.has_new_output() and not future.done():
                future.set_result(None)
        for handle, future in self._finish_waiters.items():
            if handle.finished and not future.done():
                future.set_result(None)


class WakeHub:
    """The wakers and callbacks of one engine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakers: tuple[LoopWaker, ...] = ()
        self._by_loop: dict[asyncio.AbstractEventLoop, LoopWaker] = {}
        self._callbacks: tuple[Callable[[], None], ...] = ()

    @property
    def has_callbacks(self) -> bool:
        """Whether any thread registered a callback."""
        return bool(self._callbacks)

    def waker(self) -> LoopWaker:
        """The running loop's waker."""
        loop = asyncio.get_running_loop()
        waker = self._by_loop.get(loop)
        if waker is None:
            with self._lock:
                waker = self._by_loop[loop] = LoopWaker(loop)
                self._forget_closed()
        return waker

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Register a callback for `run_callbacks`; it runs on the engine's thread and must return at once."""
        with self._lock:
            self._callbacks = (*self._callbacks, callback)

    def signal(self, *, finished: bool) -> None:
        """Wake the waiters of every loop after a step. Engine's thread."""
        for waker in self._wakers:
            waker.signal(finished=finished)

    def run_callbacks(self) -> None:
        """Run the callbacks: a mailbox went from empty to non-empty, or the engine's state changed."""
        for callback in self._callbacks:
            try:
                callback()
            except Exception:
                _log.exception("A wake-up callback failed.")

    def _forget_closed(self) -> None:
        self._by_loop = {
            loop: waker for loop, waker in self._by_loop.items() if not loop.is_closed()
        }
        self._wakers = tuple(self._by_loop.values())
