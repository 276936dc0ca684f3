"""`StoredTrees`: the conversations in the database: their rows, pointers and whole contents."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from engine.conversations.assignment import Assignment
from engine.conversations.branch_tree import BranchTree
from engine.conversations.storage import oplog
from engine.conversations.storage.database_connection import connect
from engine.conversations.storage.erasing import erase
from engine.conversations.storage.finding import SUMMARY
from engine.conversations.storage.node_rows import view_from_row
from engine.conversations.storage.queued_writes import QueuedWrites
from engine.conversations.storage.read_connections import ReadConnections
from engine.conversations.storage.stored_nodes import StoredNodes
from engine.conversations.tree import VIEW_FIELDS, TreeSummary
from engine.conversations.tree_contents import TreeContents


class StoredTrees:
    """The table of trees, with their pointers. Used by the thread of the store.

    Args:
        file: path of the database.
        reads: what is read from.
        writes: where writes are queued.
        nodes: the messages of the trees.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        file: Path,
        reads: ReadConnections,
        writes: QueuedWrites,
        nodes: StoredNodes,
        clock: Callable[[], float],
    ) -> None:
        self._file = file
        self._reads = reads
        self._writes = writes
        self._nodes = nodes
        self._clock = clock

    def create(self, tree_id: str, title: str, pointers: Sequence[Assignment] = ()) -> None:
        """Add an empty tree, with pointers that refer to no node."""
        now = self._clock()
        moves = tuple(pointers)

        def job(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO tree (id, title, created_at, updated_at) VALUES (?, ?, ?, ?)",
                (tree_id, title, now, now),
            )
            oplog.apply(connection, tree_id, moves, now)

        self._writes.add(job)

    def get(self, tree_id: str) -> TreeSummary | None:
        """A tree by id, archived or not; None if it does not exist."""
        row = self._reads.execute(f"{SUMMARY} WHERE id = ?", (tree_id,)).fetchone()
        return TreeSummary(*row) if row else None

    def head(self, tree_id: str, name: str = "HEAD") -> str | None:
        """The node id of a head, or None."""
        row = self._reads.execute(
            "SELECT node_id FROM head WHERE tree_id = ? AND name = ?", (tree_id, name)
        ).fetchone()
        return str(row[0]) if row else None

    def branch_tree(self, tree_id: str) -> BranchTree:
        """All nodes of a tree with its pointers, without token data."""
        nodes = self._reads.execute(
            f"SELECT {', '.join(VIEW_FIELDS)} FROM node WHERE tree_id = ? ORDER BY n",  # noqa: S608
            (tree_id,),
        )
        checkout = self._reads.execute(
            "SELECT parent_id, child_id FROM checkout WHERE tree_id = ?", (tree_id,)
        )
        heads = self._reads.execute(
            "SELECT name, node_id FROM head WHERE tree_id = ? ORDER BY used_at", (tree_id,)
        )
        sources = self._reads.execute(
            "SELECT node_id, names FROM source WHERE tree_id = ?", (tree_id,)
        )
        models = self._reads.execute(
            "SELECT node_id, name FROM chosen_model WHERE tree_id = ?", (tree_id,)
        )
        return BranchTree(
            map(view_from_row, nodes), dict(checkout), dict(heads), dict(sources), dict(models)
        )

    def contents(self, tree_id: str) -> TreeContents | None:
        """A tree with all its nodes and pointers; None if it does not exist."""
        summary = self.get(tree_id)
        if summary is None:
            return None
        pointers = self.branch_tree(tree_id).pointers()
        return TreeContents(
            tree_id, summary.title, tuple(self._nodes.of_tree(tree_id)), tuple(pointers)
        )

    def restore(self, contents: TreeContents) -> None:
        """Add a tree that `contents` returned; its ids must not be in use.

        It cannot be undone: that would leave an empty conversation.
        """
        self.create(contents.tree_id, contents.title)
        if contents.nodes:
            self._nodes.add(contents.nodes, name=None, changes=contents.pointers)

    def erase(self, tree_ids: Sequence[str]) -> int:
        """Delete trees for good, with their nodes, pointers, drafts and history; returns how many. Waits.

        Trees that are not archived are kept. Cannot be undone. What was deleted is gone from the file and
        from its journal, unless another process is reading at this moment.

        Raises:
            StoreError: the file takes no writes.
        """
        doomed = tuple(tree_ids)
        erased = self._writes.run(lambda c: erase(c, doomed))
        if erased and not self._reads.from_copy:
            # A connection of its own: one with an unfinished read would refuse.
            with closing(connect(self._file)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return erased
