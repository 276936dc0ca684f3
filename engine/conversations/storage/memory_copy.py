"""`MemoryCopy`: a copy of the conversation database in memory, for a start on a full disk.

SQLite needs room beside a database in WAL mode even to read it. The copy is read through `immutable`, which
needs none; it takes as much memory as the file is long. Messages in a journal that a killed process left are
not in it: such a journal, with its index, can be read without room, so that no copy is made then.
"""

import errno
import sqlite3
from pathlib import Path

from engine.conversations.storage.migrations import migrate
from engine.conversations.ulid import new_ulid

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_ROOM_IN_SQLITE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


def is_out_of_room(error: OSError | sqlite3.Error) -> bool:
    """Whether the disk is full, or takes no writes for a reason that SQLite does not tell apart."""
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _NO_ROOM_IN_SQLITE


class MemoryCopy:
    """The database as it was read, with the newest schema; empty if there is none.

    Args:
        path: the database file.

    Raises:
        sqlite3.Error: the file cannot be read.
        StoreError: its schema is newer than supported.
    """

    def __init__(self, path: Path) -> None:
        self._uri = f"file:{new_ulid()}?mode=memory&cache=shared"
        self._keeper = self.connect()  # the copy lives as long as it has a connection
        if path.exists() and path.stat().st_size > 0:
            source = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)
            try:
                source.backup(self._keeper)
            finally:
                source.close()
        migrate(self._keeper, path)
        # Whoever was streaming into these nodes had the file's journal open, and that is gone.
        self._keeper.execute("UPDATE node SET status = 'stopped' WHERE status = 'streaming'")

    def connect(self) -> sqlite3.Connection:
        """Another connection to the copy, for the calling thread."""
        return sqlite3.connect(self._uri, uri=True, isolation_level=None)

    def close(self) -> None:
        """Free the memory, once the other connections are closed."""
        self._keeper.close()
