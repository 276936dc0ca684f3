"""`WriterThread`: the only thread that writes to the database.

Jobs run in order of submission, up to 256 per transaction, each in its own savepoint, so a job that
fails does not affect others. While the file takes no writes (full disk, lock held by another program),
the jobs stay in memory, in order, and are tried again with every new job and every `RETRY_S`. Of the jobs
with one `replaces` only the newest is kept meanwhile, which limits memory.
"""

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from engine.conversations.storage.database_connection import DatabaseConnection

Job = Callable[[sqlite3.Connection], Any]
_Outcome = tuple["Future[Any]", Any, Exception | None]
"""A job's future, with its result or its error."""

RETRY_S = 1.0
"""Seconds between two attempts while the file takes no writes."""
_BATCH = 256

_OF_THE_JOB = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
}
"""SQLite's primary result codes of errors of the job, which would fail again."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry:
    """A queued job; `durable` and `replaces` are arguments of `submit`."""

    job: Job
    durable: bool
    replaces: str | None
    future: "Future[Any]" = field(default_factory=Future)


class WriterThread:
    """Owns the writing connection.

    Args:
        database: the connection, which only the writer thread uses.
        on_stall: called on the writer thread when the file begins to refuse writes, with the error, and
            when it takes them again, with None.
    """

    def __init__(
        self,
        database: DatabaseConnection,
        on_stall: Callable[[sqlite3.Error | None], None] = lambda error: None,
    ) -> None:
        self._database = database
        self._on_stall = on_stall
        self._changed = threading.Condition()
        self._queue: deque[_Entry] = deque()  # guarded by `_changed`
        self._in_flight = 0
        self._stalled: sqlite3.Error | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="pravaha-store", daemon=True)
        self._thread.start()

    @property
    def stalled(self) -> sqlite3.Error | None:
        """Why the file takes no writes, or None."""
        return self._stalled

    @property
    def busy(self) -> bool:
        """Whether a job has not been committed yet."""
        return bool(self._queue or self._in_flight)

    def submit(
        self, job: Job, *, durable: bool = True, replaces: str | None = None
    ) -> "Future[Any]":
        """Queue a job. Its future completes when the transaction is committed.

        Args:
            job: called with the connection, inside a transaction; may be called again.
            durable: keep the job while the file takes no writes; otherwise its future then fails with
                the `sqlite3.Error`.
            replaces: jobs of this name that have not run may be dropped in favour of this one.

        Raises:
            RuntimeError: the writer is closed.
        """
        entry = _Entry(job, durable, replaces)
        with self._changed:
            if self._closed:
                raise RuntimeError("the conversation store is closed")
            self._queue.append(entry)
            self._changed.notify()
        return entry.future

    def close(self) -> None:
        """Try the queued jobs once more, then end the thread. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while (batch := self._next_batch()) is not None:
            try:
                outcomes = _commit(self._database.current(), batch)
            except sqlite3.Error as error:
                # The next attempt begins on a new connection, whatever state this one is in.
                self._database.discard()
                if not self._put_back(batch, error):
                    break
            else:
                self._set_stalled(None)
                self._in_flight = 0
                for future, value, job_error in outcomes:
                    if job_error is None:
                        future.set_result(value)
                    else:
                        future.set_exception(job_error)
        # A file that was removed after the last job is put back, too.
        with suppress(sqlite3.Error):
            self._database.current()
        self._database.close()

    def _next_batch(self) -> list[_Entry] | None:
        """Wait for jobs, or for the time of the next attempt; None when there is nothing left to do."""
        with self._changed:
            if self._queue and self._stalled is not None and not self._closed:
                self._changed.wait(RETRY_S)
            while not self._queue and not self._closed:
                self._changed.wait()
            self._in_flight = min(len(self._queue), _BATCH)
            return [self._queue.popleft() for _ in range(self._in_flight)] or None

    def _put_back(self, batch: list[_Entry], error: sqlite3.Error) -> bool:
        """Keep the durable jobs of a failed batch for the next attempt; False if there will be none."""
        dropped: list[tuple[_Entry, bool]] = []
        newest: set[str] = set()
        with self._changed:
            again = not self._closed
            waiting, self._queue = [*batch, *self._queue], deque()
            for entry in reversed(waiting):
                replaced = entry.replaces in newest
                if again and entry.durable and not replaced:
                    self._queue.appendleft(entry)
                    if entry.replaces is not None:
                        newest.add(entry.replaces)
                else:
                    dropped.append((entry, replaced))
            self._in_flight = 0
            if self._queue:
                self._set_stalled(error)
        for entry, replaced in reversed(dropped):
            if replaced:
                entry.future.set_result(None)
            else:
                entry.future.set_exception(error)
        return again

    def _set_stalled(self, error: sqlite3.Error | None) -> None:
        changed = (self._stalled is None) is not (error is None)
        self._stalled = error
        if changed:
            what = "writes again" if error is None else f"no writes: {error}"
            log.warning("the conversation database takes %s", what)
            self._on_stall(error)


def _commit(connection: sqlite3.Connection, batch: list[_Entry]) -> list[_Outcome]:
    """Run the jobs in one transaction; returns their outcomes.

    Raises:
        sqlite3.Error: the file takes no writes; nothing was committed.
    """
    outcomes: list[_Outcome] = []
    connection.execute("BEGIN IMMEDIATE")
    try:
        for entry in batch:
            connection.execute("SAVEPOINT job")
            try:
                outcomes.append((entry.future, entry.job(connection), None))
            except Exception as error:  # reported by the job's future
                if _is_of_the_file(error):
                    raise
                connection.execute("ROLLBACK TO job")
                outcomes.append((entry.future, None, error))
            connection.execute("RELEASE job")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return outcomes


def _is_of_the_file(error: Exception) -> bool:
    """Whether the error is one of the file or the disk, so that the same job may succeed later."""
    # Errors of the `sqlite3` module itself, such as a closed connection, have no code.
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF) not in _OF_THE_JOB
