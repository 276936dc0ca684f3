"""`StoredOperations`: changes of pointers and flags in the database, and their undo and redo (`oplog.py`)."""

from collections.abc import Callable, Sequence

from engine.conversations.assignment import Assignment
from engine.conversations.storage import oplog
from engine.conversations.storage.queued_writes import QueuedWrites


class StoredOperations:
    """The operation logs of all trees. Used by the thread of the store.

    Args:
        writes: where writes are queued.
        clock: seconds since the epoch.
    """

    def __init__(self, writes: QueuedWrites, clock: Callable[[], float]) -> None:
        self._writes = writes
        self._clock = clock

    def assign(
        self, tree_id: str, name: str, changes: Sequence[Assignment], *, joined: bool = False
    ) -> None:
        """Change pointers or flags; can be undone.

        Args:
            tree_id: the tree.
            name: name of the operation in the oplog.
            changes: in order.
            joined: undo these changes together with those of the previous operation, if that has this
                name, too.
        """
        now, moves = self._clock(), tuple(changes)
        self._writes.add(lambda c: oplog.record(c, tree_id, name, moves, now, joined=joined))

    def undo(self, tree_id: str) -> str | None:
        """Undo the newest operation; returns its name, or None. Waits for the commit.

        Raises:
            StoreError: the file takes no writes.
        """
        now = self._clock()
        return self._writes.run(lambda c: oplog.undo(c, tree_id, now))

    def redo(self, tree_id: str) -> str | None:
        """Redo the operation undone last; returns its name, or None. Waits for the commit.

        Raises:
            StoreError: the file takes no writes.
        """
        now = self._clock()
        return self._writes.run(lambda c: oplog.redo(c, tree_id, now))
