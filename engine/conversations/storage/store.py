"""`Store`: conversations in SQLite, with one writer thread and a separate read connection.

```
Store ─┬─ trees, nodes, operations, drafts   the tables
       ├─ searches                           what contains a text, also on threads of their own
       ├─ leases                             which process adds to which conversation
       ├─ writes → WriterThread → the file   queued writes, and what the user has to know of them
       └─ reads                              committed data, or a copy of it on a full disk
```

Writes are queued and return at once; `writes.flush` waits until they are committed and raises their errors.
Reads see committed data: call `writes.wait` first to read queued writes. Everything is called on the thread
that opened the store.

The database contains every committed message if the process is killed. Nodes that a dead process was
streaming become `stopped` when the next process opens the file.
"""

import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from engine.conversations.errors import StoreError
from engine.conversations.storage import database_file, lease
from engine.conversations.storage.memory_copy import MemoryCopy, is_out_of_room
from engine.conversations.storage.queued_writes import QueuedWrites
from engine.conversations.storage.read_connections import ReadConnections
from engine.conversations.storage.searches import Searches
from engine.conversations.storage.stored_drafts import StoredDrafts
from engine.conversations.storage.stored_nodes import StoredNodes
from engine.conversations.storage.stored_operations import StoredOperations
from engine.conversations.storage.stored_prompts import StoredPrompts
from engine.conversations.storage.stored_trees import StoredTrees

log = logging.getLogger(__name__)


class Store:
    """The conversation database. Create it with `Store.open`.

    Attributes:
        file: path of the database.
        trees: the conversations.
        nodes: their messages.
        operations: changes of pointers and flags, with undo and redo.
        drafts: unsent texts and queued messages.
        prompts: what was typed, commands too.
        searches: conversations and messages that contain a text.
        leases: which process adds to which conversation.
        writes: what is not on disk yet.
        reads: the connections that only read.
    """

    def __init__(
        self,
        path: Path,
        notice: str | None,
        clock: Callable[[], float] = time.time,
        *,
        copy: MemoryCopy | None = None,
    ) -> None:
        """Use `Store.open`, which prepares the file, or makes the copy to read until that is possible."""
        self.file = path
        leases = _lease_folder(path)
        self._lease = lease.WriterLease(leases)
        self.writes = QueuedWrites(
            path,
            leases,
            notice,
            open_file=None if copy is None else database_file.prepare_and_connect,
        )
        # On a full disk this is tried until there is room; `writes.unsaved` is the reason meanwhile.
        self.reads = ReadConnections(path, leases, copy, first_write=self.writes.committed())
        self.leases = lease.TreeLeases(leases, self.writes.committed)
        self.nodes = StoredNodes(
            self.reads, self.writes, clock, leases=leases, writer=self._lease.id
        )
        self.trees = StoredTrees(path, self.reads, self.writes, self.nodes, clock)
        self.operations = StoredOperations(self.writes, clock)
        self.drafts = StoredDrafts(self.reads, self.writes)
        self.prompts = StoredPrompts(self.reads, self.writes)
        self.searches = Searches(self.reads, self.writes)
        self.nodes.stop_orphans()
        self.writes.wait()

    @classmethod
    def open(cls, path: Path, *, clock: Callable[[], float] = time.time) -> Self:
        """Open or create the database.

        A damaged file is renamed and replaced by an empty one; a notice reports it.

        Raises:
            StoreError: the schema is newer than supported, or the file cannot be opened or created.
        """
        try:
            unclean = lease.sweep(_lease_folder(path))
            notice = None
            try:
                database_file.prepare(path, check=unclean)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                notice = database_file.set_aside(path, error)
                database_file.prepare(path, check=False)
            return cls(path, notice, clock)
        except (OSError, sqlite3.OperationalError) as error:
            try:
                if is_out_of_room(error):
                    return cls(path, None, clock, copy=MemoryCopy(path))
            except (OSError, sqlite3.Error):
                log.warning("%s cannot be read either", path, exc_info=True)
            raise StoreError(
                f"The conversation database {path} cannot be opened ({error}): check the folder's "
                "permissions and free space, or set PRAVAHA_DATA_DIR to another folder."
            ) from error

    def check_integrity(self) -> None:
        """Verify the file, foreign keys, the full-text index and the parents of nodes.

        Raises:
            StoreError: the first violation, or a queued write failed.
        """
        self.writes.flush()
        self.writes.run(_check)

    def close(self) -> None:
        """Commit queued writes and close. Idempotent."""
        self.writes.close()
        self.searches.close()
        self.reads.close()
        self.leases.release_all()
        self._lease.release()


def _lease_folder(path: Path) -> Path:
    return path.with_name(path.name + ".writers")


def _check(connection: sqlite3.Connection) -> None:
    problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise StoreError(f"The conversation database is damaged: {problem}.")
    if connection.execute("PRAGMA foreign_key_check").fetchone():
        raise StoreError("The conversation database refers to a node or tree that is missing.")
    connection.execute("INSERT INTO node_fts (node_fts) VALUES ('integrity-check')")
    foreign = connection.execute(
        "SELECT node.id FROM node JOIN node AS parent ON parent.id = node.parent_id "
        "WHERE parent.tree_id <> node.tree_id LIMIT 1"
    ).fetchone()
    if foreign:
        raise StoreError(f"The parent of node {foreign[0]} belongs to another tree.")
