"""`StoreNews`: whether the store was written to since it was last looked at, for each of its readers.

SQLite tells a change once per connection; this remembers it for the open path and for the list of
conversations, which are looked at at different times. Costs microseconds if nothing was written.
"""

from engine.conversations.storage.read_connections import ReadConnections


class StoreNews:
    """What was written to the store, by anyone, since it was last looked at.

    Args:
        reads: the store's.

    Attributes:
        other_branch: whether another process has opened another branch of the open conversation.
    """

    def __init__(self, reads: ReadConnections) -> None:
        self.other_branch = False
        self._reads = reads
        self._data_version: int | None = None
        self._of_path = self._of_list = False
        self._list = self._list_version()

    def of_path(self) -> bool:
        """Whether anything was written since the last call."""
        self._look()
        news, self._of_path = self._of_path, False
        return news

    def of_list(self) -> bool:
        """Whether a conversation was added, continued, archived or erased since the last call."""
        self._look()
        if not self._of_list:
            return False
        self._of_list = False
        before, self._list = self._list, self._list_version()
        return before != self._list

    def _look(self) -> None:
        before = self._data_version
        (self._data_version,) = self._reads.execute("PRAGMA data_version").fetchone()
        written = before != self._data_version
        self._of_path |= written
        self._of_list |= written

    def _list_version(self) -> tuple[object, ...]:
        """Differs after every change of the list of conversations. One pass over the trees."""
        row: tuple[object, ...] = self._reads.execute(
            "SELECT count(*), max(updated_at), sum(archived) FROM tree"
        ).fetchone()
        return row
