"""`WriterThread`: the only thread that writes to the database.

Jobs run in order of submission, up to 256 per transaction, each in its own savepoint, so a job that
fails does not affect others. The queue is bounded: `submit` waits while it is full, which limits memory
use if the disk stalls.
"""

import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

Job = Callable[[sqlite3.Connection], Any]

_QUEUE_LENGTH = 1024
_BATCH = 256


class WriterThread:
    """Owns the writing connection.

    Args:
        connect: opens the connection; called on the writer thread, to which SQLite binds it.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._queue: queue.Queue[tuple[Job, Future[Any]] | None] = queue.Queue(_QUEUE_LENGTH)
        self._thread = threading.Thread(target=self._run, name="pravaha-store", daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, job: Job) -> "Future[Any]":
        """Queue a job. Its future completes when the transaction is committed.

        Raises:
            RuntimeError: the writer is closed.
        """
        if self._closed:
            raise RuntimeError("the conversation store is closed")
        future: Future[Any] = Future()
        self._queue.put((job, future))
        return future

    def close(self) -> None:
        """Run the queued jobs, then end the thread. Idempotent."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        open_ = True
        while open_:
            batch, open_ = self._next_batch()
            try:
                if connection is None:
                    connection = self._connect()
                self._commit(connection, batch)
            except sqlite3.Error as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
        if connection is not None:
            connection.close()

    def _next_batch(self) -> tuple[list[tuple[Job, "Future[Any]"]], bool]:
        """Wait for a job, then remove all queued ones; False after `close`."""
        batch: list[tuple[Job, Future[Any]]] = []
        item = self._queue.get()
        while item is not None:
            batch.append(item)
            if len(batch) == _BATCH:
                return batch, True
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    @staticmethod
    def _commit(connection: sqlite3.Connection, batch: list[tuple[Job, "Future[Any]"]]) -> None:
        if not batch:
            return
        outcomes: list[tuple[Future[Any], Any, Exception | None]] = []
        connection.execute("BEGIN IMMEDIATE")
        try:
            for job, future in batch:
                connection.execute("SAVEPOINT job")
                try:
                    outcomes.append((future, job(connection), None))
                except Exception as error:  # reported by the job's future
                    connection.execute("ROLLBACK TO job")
                    outcomes.append((future, None, error))
                connection.execute("RELEASE job")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        for future, value, job_error in outcomes:
            if job_error is None:
                future.set_result(value)
            else:
                future.set_exception(job_error)
