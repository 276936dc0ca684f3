"""`StoredPrompts`: what was typed, in all conversations: the user's messages and slash commands."""

from engine.conversations.storage.queued_writes import QueuedWrites
from engine.conversations.storage.read_connections import ReadConnections

MAX_COMMANDS = 500
"""The newest commands that are kept."""


class StoredPrompts:
    """Used by the thread of the store.

    Args:
        reads: what is read from.
        writes: where writes are queued.
    """

    def __init__(self, reads: ReadConnections, writes: QueuedWrites) -> None:
        self._reads = reads
        self._writes = writes

    def add_command(self, tree_id: str, text: str, now: float) -> None:
        """Save a command; it is deleted with its conversation.

        Args:
            tree_id: the conversation in which it was typed, which need not be saved itself.
            text: the command.
            now: seconds since the epoch.
        """
        self._writes.add(
            lambda c: (
                c.execute(
                    "INSERT INTO command (tree_id, text, created_at) VALUES (?, ?, ?)",
                    (tree_id, text, now),
                ),
                c.execute(
                    "DELETE FROM command WHERE n <= (SELECT max(n) FROM command) - ?",
                    (MAX_COMMANDS,),
                ),
            )
        )

    def latest(self, limit: int) -> list[str]:
        """The latest `limit` messages and commands, oldest first."""
        rows = self._reads.execute(
            "SELECT text FROM ("
            "SELECT * FROM (SELECT text, created_at, n FROM node WHERE kind = 'user' "
            "ORDER BY created_at DESC, n DESC LIMIT ?1) "
            "UNION ALL "
            "SELECT * FROM (SELECT text, created_at, n FROM command ORDER BY n DESC LIMIT ?1)"
            ") ORDER BY created_at DESC, n DESC LIMIT ?1",
            (limit,),
        )
        return [str(row[0]) for row in rows][::-1]
