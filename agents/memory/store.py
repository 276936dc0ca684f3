"""`MemoryStore`: writing, reading, forgetting and redacting memories.

Facts have immutable versions: writing to a path adds one and leaves the earlier ones readable. Only the
current version is indexed. Every write passes the filter of secrets. Thread-safe; several processes may share
a file.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents.api.errors import InvalidTask
from agents.memory.database import INDEXES, MemoryStoreError, open_database, purge
from agents.memory.entry import (
    MAX_PATH_CHARS,
    MAX_TEXT_CHARS,
    TRUSTED,
    Episode,
    MemoryEntry,
    MemoryKind,
    Scope,
    ScopeKind,
    stable_hash,
)
from agents.memory.write_filter import filter_text
from agents.tools.tool import Taint

_COLUMNS = "id, version, kind, scope, owner, path, text, origin, taint, importance, created, redacted, data"


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a write.

    Attributes:
        entry: what is stored now.
        duplicate: whether the same was stored before, so that nothing was written.
        removed: kinds of what the filter removed.
    """

    entry: MemoryEntry
    duplicate: bool
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of a deletion.

    Attributes:
        entries: number of deleted entries.
        purged: whether their bytes have left the file already; another process that reads delays it.
    """

    entries: int
    purged: bool


class MemoryStore:
    """One database of memories. Close it after use, or use it as a context manager."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Open or create the database.

        Args:
            path: its file.
            clock: Unix seconds.

        Raises:
            MemoryStoreError: it cannot be opened.
        """
        self._path = path
        self._clock = clock
        self._lock = threading.RLock()
        self._connection = open_database(path)

    def __enter__(self) -> "MemoryStore":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database. Idempotent."""
        with self._lock:
            self._connection.close()

    # Writing.

    def store_fact(
        self,
        path: str,
        text: str,
        *,
        scope: Scope,
        origin: str,
        taint: frozenset[Taint] = TRUSTED,
        importance: float = 0.5,
    ) -> Written:
        """Store a fact at a path; an earlier text there becomes an earlier version.

        Args:
            path: segments with `/` between them, such as `build/command`.
            text: what is known.
            scope: whom it belongs to.
            origin: who says so.
            taint: labels of what it was derived from.
            importance: 0 to 1.

        Raises:
            InvalidTask: path, text or importance is out of range.
            MemoryStoreError: the database cannot be written.
        """
        path = _checked_path(path)
        return self._write(
            _fact_id(scope, path),
            MemoryKind.FACT,
            scope,
            path,
            text,
            origin=origin,
            taint=taint,
            importance=importance,
            data={},
        )

    def fact_at(self, path: str, scope: Scope) -> MemoryEntry | None:
        """The latest version of the fact at a path; None if there is none, or its text was removed.

        Raises:
            InvalidTask: the path is out of range.
            MemoryStoreError: the database cannot be read.
        """
        versions = self.history(_fact_id(scope, _checked_path(path)))
        return versions[-1] if versions and not versions[-1].redacted else None

    def store_episode(
        self,
        episode: Episode,
        *,
        scope: Scope,
        origin: str,
        taint: frozenset[Taint] = TRUSTED,
        importance: float = 0.5,
    ) -> Written:
        """Store what a run did. An episode with the same task, plan, outcome and lesson is a duplicate.

        Raises:
            InvalidTask: the text or the importance is out of range.
            MemoryStoreError: the database cannot be written.
        """
        numbers = {name: asdict(episode)[name] for name in ("tokens", "seconds", "trace")}
        return self._write(
            stable_hash(MemoryKind.EPISODE, scope.kind, scope.owner, _normalised(episode.text)),
            MemoryKind.EPISODE,
            scope,
            "",
            episode.text,
            origin=origin,
            taint=taint,
            importance=importance,
            data=numbers,
        )

    def _write(
        self,
        key: str,
        kind: MemoryKind,
        scope: Scope,
        path: str,
        text: str,
        *,
        origin: str,
        taint: frozenset[Taint],
        importance: float,
        data: Mapping[str, Any],
    ) -> Written:
        if not 0 < len(text.strip()) <= MAX_TEXT_CHARS:
            raise InvalidTask(f"A memory has 1 to {MAX_TEXT_CHARS:,} characters.")
        if not 0 <= importance <= 1:
            raise InvalidTask(f"The importance is {importance}; it must be between 0 and 1.")
        filtered = filter_text(text)
        digest = stable_hash(kind, scope.kind, scope.owner, path, _normalised(filtered.text))
        with self._transaction() as connection:
            known = connection.execute(
                f"SELECT {_COLUMNS} FROM entry WHERE digest = ? AND current = 1 AND redacted = 0",  # noqa: S608
                (digest,),
            ).fetchone()
            if known is not None and taint <= _taint(known[8]) and importance == known[9]:
                return Written(_entry(known), duplicate=True, removed=filtered.removed)
            (last,) = connection.execute(
                "SELECT COALESCE(MAX(version), 0) FROM entry WHERE id = ?", (key,)
            ).fetchone()
            self._unindex(connection, "id = ?", (key,))
            connection.execute("UPDATE entry SET current = 0 WHERE id = ?", (key,))
            entry = MemoryEntry(
                key,
                last + 1,
                kind,
                scope,
                path,
                filtered.text,
                origin[:80],
                taint,
                importance,
                self._clock(),
                data=data,
            )
            cursor = connection.execute(
                f"INSERT INTO entry ({_COLUMNS}, current, digest) "  # noqa: S608
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 1, ?)",
                (
                    key,
                    entry.version,
                    kind.value,
                    scope.kind.value,
                    scope.owner,
                    path,
                    entry.text,
                    entry.origin,
                    " ".join(sorted(taint)),
                    importance,
                    entry.created,
                    json.dumps(dict(data)),
                    digest,
                ),
            )
            for index in INDEXES:
                connection.execute(
                    f"INSERT INTO {index} (rowid, path, text) VALUES (?, ?, ?)",  # noqa: S608
                    (cursor.lastrowid, path, entry.text),
                )
        return Written(entry, duplicate=False, removed=filtered.removed)

    # Reading.

    def entries(
        self,
        scopes: Sequence[Scope] | None = None,
        *,
        kind: MemoryKind | None = None,
        limit: int = 1000,
    ) -> list[MemoryEntry]:
        """Current entries, the newest first.

        Args:
            scopes: whose; None reads all.
            kind: episodes or facts; None reads both.
            limit: the largest number.

        Raises:
            MemoryStoreError: the database cannot be read.
        """
        where, values = scope_condition(scopes)
        if kind is not None:
            where, values = f"{where} AND kind = ?", [*values, kind.value]
        return self._select(
            f"WHERE current = 1 AND redacted = 0 AND {where} ORDER BY created DESC, number DESC LIMIT ?",
            (*values, limit),
        )

    def history(self, key: str) -> list[MemoryEntry]:
        """All versions of an entry, the oldest first; empty if there is no such id.

        Raises:
            MemoryStoreError: the database cannot be read.
        """
        return self._select("WHERE id = ? ORDER BY version", (key,))

    def export(self) -> Iterator[MemoryEntry]:
        """All versions of all entries, by number.

        Raises:
            MemoryStoreError: the database cannot be read.
        """
        yield from self._select("ORDER BY number", ())

    def numbered(self, numbers: Sequence[int]) -> dict[int, MemoryEntry]:
        """Entries by their numbers in the indexes; those that are gone are left out.

        Raises:
            MemoryStoreError: the database cannot be read.
        """
        marks = ", ".join("?" * len(numbers))
        query = f"SELECT number, {_COLUMNS} FROM entry WHERE number IN ({marks})"  # noqa: S608
        return {row[0]: _entry(row[1:]) for row in self.rows(query, numbers)}

    def _select(self, condition: str, values: Sequence[Any]) -> list[MemoryEntry]:
        query = f"SELECT {_COLUMNS} FROM entry {condition}"  # noqa: S608
        return [_entry(row) for row in self.rows(query, values)]

    def rows(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows of a query.

        Raises:
            MemoryStoreError: the database cannot be read.
        """
        with self._lock, self._reported():
            return self._connection.execute(query, tuple(values)).fetchall()

    # Vectors.

    def set_vectors(self, model: str, vectors: Mapping[int, bytes]) -> None:
        """Keep embeddings (float32, little-endian) by entry number.

        Raises:
            MemoryStoreError: the database cannot be written.
        """
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO vector "
                "SELECT number, ?, ? FROM entry WHERE number = ? AND current = 1",
                [(model, vector, number) for number, vector in vectors.items()],
            )

    # Removing.

    def forget(self, keys: Sequence[str]) -> Forgotten:
        """Delete entries with all their versions, from every index and from the file.

        Raises:
            MemoryStoreError: the database cannot be written.
        """
        count = 0
        with self._transaction() as connection:
            for key in keys:
                self._unindex(connection, "id = ?", (key,))
                rows = connection.execute("DELETE FROM entry WHERE id = ?", (key,)).rowcount
                count += rows > 0
        return Forgotten(count, self._purge() if count else True)

    def redact(self, key: str, version: int | None = None) -> Forgotten:
        """Remove the text of one version, or of all, and keep the record that it was there.

        Raises:
            MemoryStoreError: the database cannot be written.
        """
        condition, values = "id = ? AND redacted = 0", [key]
        if version is not None:
            condition, values = f"{condition} AND version = ?", [key, str(version)]
        with self._transaction() as connection:
            self._unindex(connection, condition, values)
            count = connection.execute(
                f"UPDATE entry SET text = '', digest = '', data = '{{}}', redacted = 1 WHERE {condition}",  # noqa: S608
                values,
            ).rowcount
        return Forgotten(count, self._purge() if count else True)

    def _unindex(
        self, connection: sqlite3.Connection, condition: str, values: Sequence[Any]
    ) -> None:
        numbers = f"(SELECT number FROM entry WHERE {condition})"  # noqa: S608
        for index in INDEXES:
            connection.execute(f"DELETE FROM {index} WHERE rowid IN {numbers}", values)  # noqa: S608
        connection.execute(f"DELETE FROM vector WHERE number IN {numbers}", values)  # noqa: S608

    def _purge(self) -> bool:
        with self._lock, self._reported():
            return purge(self._connection)

    # The database.

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._reported():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise MemoryStoreError(f"The memory {self._path} cannot be used: {error}.") from error


def scope_condition(scopes: Sequence[Scope] | None) -> tuple[str, list[Any]]:
    """A condition of SQL, and its values, for entries of these scopes; None for all."""
    if scopes is None:
        return "1", []
    parts = ["(scope = ? AND owner = ?)"] * len(scopes)
    return f"({' OR '.join(parts) or '0'})", [
        value for scope in scopes for value in (scope.kind.value, scope.owner)
    ]


def _fact_id(scope: Scope, path: str) -> str:
    return stable_hash(MemoryKind.FACT, scope.kind, scope.owner, path)


def _checked_path(path: str) -> str:
    path = "/".join(part.strip() for part in path.split("/") if part.strip())
    if not 0 < len(path) <= MAX_PATH_CHARS or not path.isprintable():
        raise InvalidTask(f"A fact's path has 1 to {MAX_PATH_CHARS} printable characters.")
    if filter_text(path).removed:
        raise InvalidTask("The path of a fact must not contain secrets or personal numbers.")
    return path


def _normalised(text: str) -> str:
    return " ".join(text.casefold().split())


def _taint(text: str) -> frozenset[Taint]:
    return frozenset(Taint(label) for label in text.split())


def _entry(row: tuple[Any, ...]) -> MemoryEntry:
    (
        key,
        version,
        kind,
        scope,
        owner,
        path,
        text,
        origin,
        taint,
        importance,
        created,
        redacted,
        data,
    ) = row
    return MemoryEntry(
        key,
        version,
        MemoryKind(kind),
        Scope(ScopeKind(scope), owner),
        path,
        text,
        origin,
        _taint(taint),
        importance,
        created,
        bool(redacted),
        json.loads(data),
    )
