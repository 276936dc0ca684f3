"""`RunStore`: runs, their nodes' results and events in one SQLite database.

A node's result is committed before a dependant starts, so that a run that was killed goes on at its first
unfinished node. Write-ahead log, mode 0600. One connection; use from one thread. While a process works on a
run it holds the run's lock, which the kernel frees if the process is killed.
"""

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.api.errors import InvalidTask
from agents.api.events import RunEvent, RunState, event_fields, event_from_fields
from engine.files.sqlite_file import create_sqlite_file

_SCHEMA = """
CREATE TABLE IF NOT EXISTS run (
    id TEXT PRIMARY KEY, pipeline TEXT NOT NULL, source TEXT NOT NULL, request TEXT NOT NULL,
    state TEXT NOT NULL, created REAL NOT NULL, finished REAL
) STRICT;
CREATE TABLE IF NOT EXISTS node (
    run TEXT NOT NULL REFERENCES run ON DELETE CASCADE, name TEXT NOT NULL, state TEXT NOT NULL,
    result TEXT NOT NULL, finished REAL NOT NULL, PRIMARY KEY (run, name)
) STRICT;
CREATE TABLE IF NOT EXISTS event (
    run TEXT NOT NULL REFERENCES run ON DELETE CASCADE, sequence INTEGER NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (run, sequence)
) STRICT;
"""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was stored.

    Attributes:
        id: its id.
        pipeline: the pipeline's name.
        source: the pipeline's YAML text when the run began.
        request: paths, task, document and options, as JSON members.
        state: the last state; `running` also for a run whose process was killed.
        created: Unix seconds.
        finished: Unix seconds, or None.
        nodes: stored results by node, as JSON members.
    """

    id: str
    pipeline: str
    source: str
    request: Mapping[str, Any]
    state: RunState
    created: float
    finished: float | None = None
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class RunStore:
    """The database of runs."""

    def __init__(self, path: Path) -> None:
        """Open or create the database.

        Raises:
            InvalidTask: it is damaged or cannot be written, or was written by a newer version.
            OSError: the folder cannot be written.
        """
        self._path = path
        try:
            self._db = create_sqlite_file(path)
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise InvalidTask(f"{path} was written by a newer version of Pravāha: update it.")
            self._db.executescript(_SCHEMA)
            self._db.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.OperationalError as error:  # a full disk, a read-only one
            raise InvalidTask(f"{path} cannot be written ({error}).") from error
        except sqlite3.DatabaseError as error:
            raise InvalidTask(f"{path} cannot be read ({error}): move it away.") from error

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    @contextmanager
    def hold(self, run: str) -> Iterator[None]:
        """Be the only one, in this and in other processes, that works on a run.

        Raises:
            InvalidTask: somebody else does.
            OSError: the folder cannot be written.
        """
        path = self._path.with_name(f"{self._path.name}.{run}.lock")
        descriptor = _locked(path)
        if descriptor is None:
            raise InvalidTask(f"The run {run} is at work in another process.")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)

    def begin(
        self, run: str, pipeline: str, source: str, request: Mapping[str, Any], *, now: float
    ) -> None:
        """Store a new run, or mark a stored one as running again."""
        self._db.execute(
            "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, NULL) "
            "ON CONFLICT (id) DO UPDATE SET state = excluded.state, finished = NULL",
            (run, pipeline, source, json.dumps(request), RunState.RUNNING.value, now),
        )

    def finish(self, run: str, state: RunState, *, now: float) -> None:
        """Store how a run finished."""
        self._db.execute(
            "UPDATE run SET state = ?, finished = ? WHERE id = ?", (state.value, now, run)
        )

    def put_node(
        self, run: str, name: str, state: RunState, result: Mapping[str, Any], *, now: float
    ) -> None:
        """Store a node's result."""
        self._db.execute(
            "INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?, ?)",
            (run, name, state.value, json.dumps(result), now),
        )

    def put_events(self, run: str, events: Iterable[RunEvent]) -> None:
        """Append events."""
        rows = [(run, one.sequence, json.dumps(event_fields(one))) for one in events]
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT OR REPLACE INTO event VALUES (?, ?, ?)", rows)
        self._db.execute("COMMIT")

    def events(self, run: str) -> list[RunEvent]:
        """The stored events of a run, in order."""
        rows = self._db.execute("SELECT data FROM event WHERE run = ? ORDER BY sequence", (run,))
        return [event_from_fields(json.loads(row[0])) for row in rows]

    def get(self, run: str) -> StoredRun:
        """A run with its nodes.

        Raises:
            InvalidTask: there is none.
        """
        row = self._db.execute("SELECT * FROM run WHERE id = ?", (run,)).fetchone()
        if row is None:
            raise InvalidTask(f"There is no run {run!r:.60}: `pravaha pipelines runs` lists them.")
        nodes = self._db.execute("SELECT name, result FROM node WHERE run = ?", (run,))
        return _stored(row, {name: json.loads(result) for name, result in nodes})

    def list(self, limit: int = 50) -> "list[StoredRun]":
        """The newest runs, without their nodes."""
        rows = self._db.execute("SELECT * FROM run ORDER BY created DESC LIMIT ?", (limit,))
        return [_stored(row, {}) for row in rows]


def _locked(path: Path) -> int | None:
    """An open descriptor with the lock of a file, or None if somebody else has it."""
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except FileNotFoundError:
            pass
        os.close(descriptor)  # its holder removed the file before it let go: lock the new one


def _stored(row: tuple[Any, ...], nodes: Mapping[str, Mapping[str, Any]]) -> StoredRun:
    run, pipeline, source, request, state, created, finished = row
    return StoredRun(
        run, pipeline, source, json.loads(request), RunState(state), created, finished, nodes
    )
