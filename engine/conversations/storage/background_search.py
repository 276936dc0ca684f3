"""`BackgroundSearch`: searches of the store on a thread of their own, so that typing never waits.

The thread has its own read connection. A new search interrupts the one before it, whose result nobody
waits for any more; its future is cancelled. Cost of a search: that of its function.
"""

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Generic, TypeVar

Query = TypeVar("Query")
Found = TypeVar("Found")


class BackgroundSearch(Generic[Query, Found]):
    """One search at a time. `start` and `close` are called by one thread.

    Args:
        connect: gives the connection; called on the search thread before each search. The last one is
            closed at the end.
        search: runs the query on it.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        search: Callable[[sqlite3.Connection, Query], Found],
    ) -> None:
        self._connect = connect
        self._search = search
        self._changed = threading.Condition()
        self._wanted: tuple[Query, Future[Found]] | None = None
        self._running: Future[Found] | None = None
        self._connection: sqlite3.Connection | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def start(self, query: Query) -> "Future[Found]":
        """Begin a search; the one before it is cancelled if it has not finished."""
        future: Future[Found] = Future()
        with self._changed:
            self._drop()
            self._wanted = (query, future)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="search", daemon=True)
                self._thread.start()
            self._changed.notify()
        return future

    def close(self) -> None:
        """Cancel the search and end the thread. Idempotent."""
        with self._changed:
            self._closed = True
            self._drop()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _drop(self) -> None:
        """Cancel what was asked before. The lock is held."""
        if self._wanted is not None:
            self._wanted[1].cancel()
            self._wanted = None
        if self._running is not None:
            self._running.cancel()
            if self._connection is not None:
                self._connection.interrupt()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._answer(*job)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _next(self) -> "tuple[Query, Future[Found]] | None":
        """Wait for the next search; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted is not None or self._closed)
            job, self._wanted = self._wanted, None
            self._running = job[1] if job else None
            return job

    def _answer(self, query: Query, future: "Future[Found]") -> None:
        try:
            connection = self._connect()
            with self._changed:
                replaced, self._connection = self._connection, connection
            if replaced is not None and replaced is not connection:
                replaced.close()
            if future.cancelled():
                return
            found = self._search(connection, query)
        except Exception as error:
            self._forget_running()
            with suppress(InvalidStateError):  # it was cancelled meanwhile
                future.set_exception(error)
        else:
            self._forget_running()
            with suppress(InvalidStateError):
                future.set_result(found)

    def _forget_running(self) -> None:
        """A search that comes from here on has nothing to interrupt."""
        with self._changed:
            self._running = None
