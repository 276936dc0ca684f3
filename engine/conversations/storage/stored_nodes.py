"""`StoredNodes`: the messages in the database: added, continued while they stream, and read.

A node is immutable once it has finished (the schema's triggers refuse other writes), except its flags, which
`StoredOperations` changes. Writes are queued; reads see committed data. Cost of a path: O(depth).
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from engine.conversations.assignment import Assignment
from engine.conversations.errors import StoreError
from engine.conversations.storage import lease, oplog
from engine.conversations.storage.node_rows import NODE_COLUMNS, node_from_row, row_from_node
from engine.conversations.storage.queued_writes import QueuedWrites
from engine.conversations.storage.read_connections import ReadConnections
from engine.conversations.storage.stored_images import add_images, with_images
from engine.conversations.tree import Node


class StoredNodes:
    """The table of nodes. Used by the thread of the store.

    Args:
        reads: what is read from.
        writes: where writes are queued.
        clock: seconds since the epoch.
        leases: directory of the lease files.
        writer: the lease of this process, recorded in the nodes that it streams into.
    """

    def __init__(
        self,
        reads: ReadConnections,
        writes: QueuedWrites,
        clock: Callable[[], float],
        *,
        leases: Path,
        writer: str,
    ) -> None:
        self._reads = reads
        self._writes = writes
        self._clock = clock
        self._leases = leases
        self._writer = writer

    def add(
        self,
        nodes: Sequence[Node],
        *,
        name: str | None,
        changes: Sequence[Assignment] | None = None,
    ) -> None:
        """Add nodes and move pointers.

        Args:
            nodes: nodes of one tree, at least one, parents before children.
            name: name of the operation in the oplog, e.g. `send`; None for one that cannot be undone.
            changes: the pointers to move; None if the nodes are a chain to whose end HEAD moves.
        """
        now = self._clock()
        rows = [
            row_from_node(node, self._writer if node.status == "streaming" else None)
            for node in nodes
        ]
        illustrated = [node for node in nodes if node.images]
        tree_id = nodes[-1].tree_id
        if changes is None:
            changes = [Assignment("checkout", node.parent_id or "", node.id) for node in nodes]
            changes.append(Assignment("head", "HEAD", nodes[-1].id))
        moves = tuple(changes)
        columns = ", ".join((*NODE_COLUMNS, "writer"))
        marks = ", ".join("?" * (len(NODE_COLUMNS) + 1))

        def job(connection: sqlite3.Connection) -> None:
            connection.executemany(
                f"INSERT INTO node ({columns}) VALUES ({marks})",  # noqa: S608
                rows,
            )
            add_images(connection, illustrated)
            if name is None:
                oplog.apply(connection, tree_id, moves, now)
            else:
                oplog.record(connection, tree_id, name, moves, now)
            # Another process may have archived it: what is added must be visible.
            connection.execute("UPDATE tree SET archived = 0 WHERE id = ?", (tree_id,))
            _touch(connection, tree_id, now)

        self._writes.add(job)

    def update_streaming(self, node: Node) -> None:
        """Save the current content of a streaming node; its new status may be a final one.

        The write fails if the node's saved status is no longer `streaming`.
        """
        now = self._clock()
        fixed = {"id", "tree_id", "parent_id", "kind", "created_at"}
        row = dict(zip(NODE_COLUMNS, row_from_node(node, None)[:-1], strict=True))
        values = {name: value for name, value in row.items() if name not in fixed}
        columns = ", ".join(f"{name} = :{name}" for name in values)
        parameters = {**values, "id": node.id}

        def job(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                f"UPDATE node SET {columns} "  # noqa: S608
                "WHERE id = :id AND status = 'streaming'",
                parameters,
            ).rowcount
            if changed != 1:
                raise StoreError(f"Node {node.id} is finished and cannot be changed.")
            if node.status != "streaming":
                _touch(connection, node.tree_id, now)

        self._writes.add(job, replaces=node.id)

    def set_token_ids(self, node: Node) -> None:
        """Save the token ids of a user turn, with the fingerprints of tokenizer and rendering."""
        row = dict(zip(NODE_COLUMNS, row_from_node(node, None)[:-1], strict=True))
        self._writes.add(
            lambda c: c.execute(
                "UPDATE node SET token_ids = :token_ids, tokenizer = :tokenizer, "
                "template = :template WHERE id = :id",
                row,
            )
        )

    def set_passages(self, node: Node) -> None:
        """Save the passages that were found for a user node, or the check of an answer's citations."""
        row = dict(zip(NODE_COLUMNS, row_from_node(node, None)[:-1], strict=True))
        self._writes.add(
            lambda c: c.execute(
                "UPDATE node SET context = :context, passages = :passages, n_passages = :n_passages, "
                "citations = :citations, checked_text = :checked_text WHERE id = :id",
                row,
            )
        )

    def stop_orphans(self) -> None:
        """Set streaming nodes of dead writers to `stopped`; their saved text is kept."""
        writers = self._reads.execute(
            "SELECT DISTINCT writer FROM node WHERE status = 'streaming'"
        ).fetchall()
        dead = [w for (w,) in writers if w is None or not lease.is_alive(self._leases, w)]
        for writer in dead:
            self._writes.add(partial(_stop_nodes_of, writer))

    def get(self, node_id: str) -> Node | None:
        """A node by id, or None."""
        row = self._reads.execute(
            f"SELECT {', '.join(NODE_COLUMNS)} FROM node WHERE id = ?",  # noqa: S608
            (node_id,),
        ).fetchone()
        return self._node(row) if row else None

    def path(self, node_id: str) -> list[Node]:
        """The nodes from the root to this one."""
        columns = ", ".join(f"node.{name}" for name in NODE_COLUMNS)
        # Only names from NODE_COLUMNS are interpolated.
        query = f"""
            WITH RECURSIVE up (id, parent_id, depth) AS (
                SELECT id, parent_id, 0 FROM node WHERE id = ?
                UNION ALL
                SELECT node.id, node.parent_id, up.depth + 1
                FROM node JOIN up ON node.id = up.parent_id
            )
            SELECT {columns} FROM up JOIN node ON node.id = up.id ORDER BY up.depth DESC
        """  # noqa: S608
        rows = self._reads.execute(query, (node_id,))
        return [self._node(row) for row in rows]

    def of_tree(self, tree_id: str) -> Iterator[Node]:
        """Every node of a tree, parents before children."""
        rows = self._reads.execute(
            f"SELECT {', '.join(NODE_COLUMNS)} FROM node WHERE tree_id = ? ORDER BY n",  # noqa: S608
            (tree_id,),
        )
        return map(self._node, rows)

    def _node(self, row: tuple[Any, ...]) -> Node:
        """The node of a row, with its images."""
        return with_images(self._reads.current(), node_from_row(row))


def _touch(connection: sqlite3.Connection, tree_id: str, now: float) -> None:
    connection.execute("UPDATE tree SET updated_at = ? WHERE id = ?", (now, tree_id))


def _stop_nodes_of(writer: str | None, connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE node SET status = 'stopped' WHERE status = 'streaming' AND writer IS ?", (writer,)
    )
