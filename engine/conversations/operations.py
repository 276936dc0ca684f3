"""`Operations`: undo and redo in the open conversation; the log is `oplog.py`."""

from collections.abc import Callable

from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.storage.store import Store


class Operations:
    """The operation log of the open conversation. Used by the session's thread.

    Running answers go on while operations are undone.
    """

    def __init__(self, store: Store, loaded: LoadedConversations) -> None:
        self._store = store
        self._loaded = loaded

    def undo(self) -> str | None:
        """Undo the last operation; returns its name, or None.

        Raises:
            InvalidRequest: another process is answering in the conversation.
            StoreError: the file takes no writes.
        """
        return self._replay(self._store.operations.undo)

    def redo(self) -> str | None:
        """Redo the operation undone last; returns its name, or None. Raises as `undo`."""
        return self._replay(self._store.operations.redo)

    def _replay(self, replay: Callable[[str], str | None]) -> str | None:
        with self._loaded.writing() as conversation:
            name = replay(conversation.id)
            if name is not None:
                self._loaded.read_path(conversation)
                summary = self._store.trees.get(conversation.id)
                conversation.title = summary.title if summary else conversation.title
        return name
