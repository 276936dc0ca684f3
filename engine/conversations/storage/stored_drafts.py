"""`StoredDrafts`: the unsent text and the queued messages of each conversation in the database."""

import sqlite3
from collections.abc import Callable
from typing import Any

from engine.conversations.storage.queued_writes import QueuedWrites
from engine.conversations.storage.read_connections import ReadConnections


class StoredDrafts:
    """The table of drafts. Used by the thread of the store.

    Args:
        reads: what is read from.
        writes: where writes are queued. A draft replaces an earlier one that was not written yet.
    """

    def __init__(self, reads: ReadConnections, writes: QueuedWrites) -> None:
        self._reads = reads
        self._writes = writes

    def save(self, tree_id: str, text: str, queued: str, now: float) -> None:
        """Save the draft of a conversation, which need not be saved itself.

        Args:
            tree_id: the conversation.
            text: the unsent text.
            queued: the queued messages, as JSON.
            now: seconds since the epoch.
        """
        self._write(
            tree_id,
            lambda c: c.execute(
                "INSERT OR REPLACE INTO draft VALUES (?, ?, ?, ?)", (tree_id, text, queued, now)
            ),
        )

    def delete(self, tree_id: str) -> None:
        """Delete the draft of a conversation."""
        self._write(tree_id, lambda c: c.execute("DELETE FROM draft WHERE tree_id = ?", (tree_id,)))

    def read(self, tree_id: str) -> tuple[str, str] | None:
        """Text and queued messages (JSON) of a conversation's draft, or None."""
        row: tuple[str, str] | None = self._reads.execute(
            "SELECT text, queued FROM draft WHERE tree_id = ?", (tree_id,)
        ).fetchone()
        return row

    def unsaved(self, after: float) -> list[str]:
        """The drafts since `after` whose conversations are not saved, newest first."""
        rows = self._reads.execute(
            "SELECT tree_id FROM draft WHERE updated_at >= ? AND tree_id NOT IN (SELECT id FROM tree) "
            "ORDER BY updated_at DESC",
            (after,),
        )
        return [str(tree_id) for (tree_id,) in rows]

    def _write(self, tree_id: str, job: Callable[[sqlite3.Connection], Any]) -> None:
        self._writes.add(job, replaces=f"draft {tree_id}")
