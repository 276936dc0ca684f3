"""`LoopThread`: an event loop in a thread of its own, for callers on other threads.

asyncio loses what is handed to a loop between its last turn and its `close`: the future of such a call never
ends, and a thread that waits for it hangs. Here every call that is accepted ends.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines and callbacks of other threads."""

    def __init__(self, name: str) -> None:
        """Start the thread.

        Args:
            name: of the thread.
        """
        self._loop = asyncio.new_event_loop()
        self._accepting = threading.Lock()
        self._closing = self._closed = False  # `_closed`: nothing is accepted any more
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Run a coroutine. Its future is cancelled if the thread has ended or ends before it is done."""
        with self._accepting:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        refused: Future[Result] = Future()
        refused.cancel()
        refused.set_running_or_notify_cancel()  # `concurrent.futures.wait` waits for it otherwise
        return refused

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call a function on the loop; ignored once the thread has ended."""
        with self._accepting:
            if not self._closed:
                self._loop.call_soon_threadsafe(callback)

    def close(self, last: Coroutine[Any, Any, None], *, within_s: float) -> None:
        """Await `last`, cancel what still runs, and end the thread. Idempotent.

        Args:
            last: what has to be done before; others may still call meanwhile.
            within_s: how long to wait for the end of the thread.
        """
        with self._accepting:
            again, self._closing = self._closing, True
        if again:
            last.close()
        else:
            self.submit(self._end(last))
        self._thread.join(within_s)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _end(self, last: Coroutine[Any, Any, None]) -> None:
        try:
            await last
        finally:
            with self._accepting:
                self._closed = True
            await asyncio.sleep(0)  # what was accepted last becomes a task in this turn of the loop
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            self._loop.stop()
