"""The one thread that writes to the database.

Jobs run in the order of submission, many to a transaction, each in its own savepoint: a job that
fails takes nothing else with it. The queue is bounded; when it is full `submit` waits, so memory
stays bounded even on a stalled disk.
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
        connect: opens the connection; called on the writer's thread (SQLite binds it to it).
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._queue: queue.Queue[tuple[Job, Future[Any]] | None] = queue.Queue(_QUEUE_LENGTH)
        self._thread = threading.Thread(target=self._run, name="pravaha-store", daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, job: Job) -> "Future[Any]":
        """Queue a job. The future ends when its transaction is committed.

        Raises:
            RuntimeError: the writer was closed.
        """
        if self._closed:
            raise RuntimeError("the conversation store is closed")
        future: Future[Any] = Future()
        self._queue.put((job, future))
        return future

    def close(self) -> None:
        """Run what is queued, then end the thread. Idempotent."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        open_ = True
        while open_:
            batch, open_ = self._take()
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

    def _take(self) -> tuple[list[tuple[Job, "Future[Any]"]], bool]:
        """Wait for a job, then take what else is there; False at the end of the queue."""
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
                except Exception as error:  # the job's own failure: its future carries it
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
