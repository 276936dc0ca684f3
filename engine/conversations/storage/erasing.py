"""Deleting conversations for good: the only operation that removes nodes.

Runs inside the writer's transaction, so that after a crash a conversation is there whole or not at all.
Cost: one pass over the database for the indexes, then O(deleted nodes).
"""

import sqlite3
from collections.abc import Sequence

from engine.conversations.storage.stored_images import remove_unused

_INDEXES = {
    "node": "parent_id",
    "checkout": "child_id",
    "head": "node_id",
    "node_image": "node_id",
}
"""Columns that refer to nodes. Each deletion of a node looks for references to it; without an index that
would read the whole table once per node. Nothing else needs these indexes, so they are not kept."""
_PARTS = ("oplog", "checkout", "head", "draft", "source", "chosen_model", "node_image", "command")


def erase(connection: sqlite3.Connection, tree_ids: Sequence[str]) -> int:
    """Delete the archived ones of these trees, with all that belongs to them; returns how many.

    What is deleted is overwritten with zeros in the pages that it leaves.
    """
    archived = [
        tree_id
        for tree_id in tree_ids
        if connection.execute(
            "SELECT 1 FROM tree WHERE id = ? AND archived = 1", (tree_id,)
        ).fetchone()
    ]
    if not archived:
        return 0
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA defer_foreign_keys = ON")  # until the end of the transaction
    for table, column in _INDEXES.items():
        connection.execute(f"CREATE INDEX erase_{table} ON {table} ({column})")
    for tree_id in archived:
        for table in (*_PARTS, "node"):
            # Names come from the constants above.
            connection.execute(f"DELETE FROM {table} WHERE tree_id = ?", (tree_id,))  # noqa: S608
        connection.execute("DELETE FROM tree WHERE id = ?", (tree_id,))
    for table in _INDEXES:
        connection.execute(f"DROP INDEX erase_{table}")
    remove_unused(connection)
    return len(archived)
