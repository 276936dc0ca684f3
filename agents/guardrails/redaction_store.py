"""`RedactionStore`: the placeholders of conversations in SQLite, readable by the user alone (mode 0600)."""

import sqlite3
from contextlib import closing
from pathlib import Path

from agents.guardrails.redaction import RedactionMap
from engine.files.sqlite_file import create_sqlite_file

_SCHEMA = """
CREATE TABLE IF NOT EXISTS redaction (
    conversation TEXT NOT NULL,
    placeholder TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (conversation, placeholder)
) WITHOUT ROWID
"""


class RedactionStore:
    """A file of redactions. Each call opens it, so any thread may call."""

    def __init__(self, path: Path) -> None:
        """Use the database at `path`; it is created by the first `save`."""
        self._path = path

    def load(self, conversation: str) -> RedactionMap:
        """The redactions of a conversation; empty if none were saved.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        if not self._path.exists():
            return RedactionMap()
        with closing(self._connect()) as connection:
            rows = connection.execute(
                "SELECT placeholder, value FROM redaction WHERE conversation = ?", (conversation,)
            )
            return RedactionMap(dict(rows))

    def save(self, conversation: str, redactions: RedactionMap) -> None:
        """Add a conversation's placeholders; earlier ones stay as they are.

        Raises:
            sqlite3.Error: the file cannot be written.
            OSError: its folder cannot be written.
        """
        with closing(self._connect()) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT OR IGNORE INTO redaction VALUES (?, ?, ?)",
                [(conversation, *pair) for pair in redactions.values.items()],
            )

    def forget(self, conversation: str) -> None:
        """Delete a conversation's values from the file, bytes included.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        if not self._path.exists():
            return
        with closing(self._connect()) as connection, connection:
            connection.execute("DELETE FROM redaction WHERE conversation = ?", (conversation,))

    def _connect(self) -> sqlite3.Connection:
        # A write-ahead log would keep deleted values.
        connection = create_sqlite_file(self._path, journal="delete")
        connection.execute(_SCHEMA)
        return connection
