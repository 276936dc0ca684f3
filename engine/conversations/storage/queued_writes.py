"""`QueuedWrites`: the writes that are not on disk yet, and what the user has to know about them.

Jobs run in order on the writer's thread (`writer.py`). While the file takes no writes (a full disk), they
stay in memory and are tried again; `unsaved` is then the reason. A file that is removed meanwhile is put back
(`database_connection.py`).
"""

import logging
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from engine.conversations.errors import StoreError
from engine.conversations.storage.database_connection import DatabaseConnection
from engine.conversations.storage.writer import Job, WriterThread

log = logging.getLogger(__name__)

T = TypeVar("T")


class QueuedWrites:
    """The writes to one database. Used by the thread of the store; `wait` by any thread.

    Args:
        path: the database.
        leases: directory of the lease files.
        notice: a first sentence for the user, or None.
        open_file: opens the file; None takes one that is prepared.
    """

    def __init__(
        self,
        path: Path,
        leases: Path,
        notice: str | None = None,
        *,
        open_file: Callable[[Path], sqlite3.Connection] | None = None,
    ) -> None:
        self._path = path
        self._failures: list[BaseException] = []
        self._notices: deque[str] = deque([notice] if notice else [])
        database = DatabaseConnection(
            path, leases, on_restored=self._note_restored, open_file=open_file
        )
        self._writer = WriterThread(database, self._note_stall)

    def add(self, job: Job, *, replaces: str | None = None) -> None:
        """Queue a write; returns at once. `flush` raises its error.

        Args:
            job: see `WriterThread.submit`.
            replaces: writes of this name that have not been made may be dropped in favour of this one.
        """
        self._writer.submit(job, replaces=replaces).add_done_callback(self._note_failure)

    def run(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Make a write and wait until it is committed; returns its result.

        Raises:
            StoreError: the file takes no writes.
        """
        try:
            result: T = self._writer.submit(job, durable=False).result()
        except sqlite3.Error as error:
            raise self._not_saved(error) from error
        return result

    def committed(self) -> "Future[Any]":
        """A future that is done once everything that is queued now is committed."""
        return self._writer.submit(lambda _: None)

    def flush(self) -> None:
        """Wait until all queued writes are committed.

        Raises:
            StoreError: the file takes no writes, or a write queued since the last flush failed.
        """
        self.run(lambda _: None)
        failures, self._failures = self._failures, []
        if failures:
            raise self._not_saved(failures[0])

    def wait(self) -> None:
        """Wait until all queued writes are committed or have failed; does not raise their errors.

        Returns at once while the file takes no writes.
        """
        if self.unsaved is None:
            self._writer.submit(lambda _: None, durable=False).exception()

    @property
    def unsaved(self) -> str | None:
        """Why queued writes cannot be committed at present, e.g. "database or disk is full"; else None."""
        error = self._writer.stalled
        return None if error is None else str(error)

    @property
    def saving(self) -> bool:
        """Whether a write is not committed yet."""
        return self._writer.busy

    def take_notice(self) -> str | None:
        """The next sentence for the user, each once: damage, failed writes, a full disk; else None."""
        return self._notices.popleft() if self._notices else None

    def close(self) -> None:
        """Try the queued writes once more, then end the writer's thread. Idempotent."""
        self._writer.close()

    def _note_failure(self, future: "Future[Any]") -> None:
        error = future.exception()
        if error is not None:
            log.error("conversation store: %s", error)
            self._failures.append(error)
            self._notices.append(str(self._not_saved(error)))

    def _note_stall(self, error: sqlite3.Error | None) -> None:
        self._notices.append(
            f"Conversations are saved to {self._path} again."
            if error is None
            else f"Conversations cannot be saved to {self._path} ({error}): they are kept in memory "
            "and saved as soon as that is possible."
        )

    def _note_restored(self) -> None:
        self._notices.append(
            f"The conversation database {self._path} was removed while it was in use: it is written "
            "again, with every conversation."
        )

    def _not_saved(self, error: BaseException) -> StoreError:
        return StoreError(f"The last messages could not be saved to {self._path} ({error}).")
