"""`StoreNews`: whether the store was written to since it was last looked at, for each of its readers.

`Store.written_since` can be asked once per change; this remembers the answer for the open path and for the
list of conversations, which are looked at at different times.
"""

from engine.conversations.store import Store


class StoreNews:
    """What was written to the store, by anyone, since it was last looked at.

    Attributes:
        other_branch: whether another process has opened another branch of the open conversation.
    """

    def __init__(self, store: Store) -> None:
        self.other_branch = False
        self._store = store
        self._of_path = self._of_list = False
        self._list = store.list_version()

    def of_path(self) -> bool:
        """Whether anything was written since the last call."""
        self._look()
        news, self._of_path = self._of_path, False
        return news

    def of_list(self) -> bool:
        """Whether the list of conversations differs from that of the last call."""
        self._look()
        if not self._of_list:
            return False
        self._of_list = False
        before, self._list = self._list, self._store.list_version()
        return before != self._list

    def _look(self) -> None:
        written = self._store.written_since()
        self._of_path |= written
        self._of_list |= written
