"""`Store`: conversations in SQLite, with one writer thread and a separate read connection.

Writes are queued and return immediately; `flush` waits until they are committed and raises their errors.
While the file takes no writes (a full disk), they stay in memory and are tried again (`writer.py`);
`unsaved` is then the reason. If the disk is full at the start, a copy in memory is read (`memory_copy.py`)
until there is room. A file that is removed meanwhile is put back (`database_connection.py`).
Reads see committed data: call `wait_for_writes` first to read queued writes.
Reading methods must be called on the thread that opened the store.

The database contains every committed message if the process is killed. Nodes that a dead process was
streaming become `stopped` when the next process opens the file.
"""

import logging
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from engine.conversations import lease, oplog
from engine.conversations.background_search import BackgroundSearch
from engine.conversations.branch_tree import BranchTree
from engine.conversations.database_connection import DatabaseConnection, connect
from engine.conversations.erasing import erase
from engine.conversations.errors import StoreError
from engine.conversations.finding import MAX_HITS, SUMMARY, TreeQuery, find_messages, find_trees
from engine.conversations.memory_copy import MemoryCopy, is_out_of_room
from engine.conversations.migrations import migrate
from engine.conversations.node_rows import (
    NODE_COLUMNS,
    node_from_row,
    row_from_node,
    view_from_row,
)
from engine.conversations.oplog import Assignment
from engine.conversations.stored_images import add_images, with_images
from engine.conversations.tree import VIEW_FIELDS, Node, SearchHit, TreeSummary
from engine.conversations.writer import WriterThread
from engine.files.private_file import create_private_file

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TreeContents:
    """A conversation with all branches and token data.

    Attributes:
        nodes: parents before children.
        pointers: the assignments of checkout and heads.
    """

    tree_id: str
    title: str
    nodes: tuple[Node, ...]
    pointers: tuple[Assignment, ...]


class Store:
    """Access to the conversation database. Create it with `Store.open`.

    Attributes:
        file: path of the database.
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
        self._clock = clock
        leases = _lease_folder(path)
        self._lease = lease.WriterLease(leases)
        self._tree_leases = lease.TreeLeases(leases)
        self._copy = copy
        self._copied = None if copy is None else copy.connect()
        self._reading = DatabaseConnection(path, leases)
        self._data_version: int | None = None
        self._failures: list[BaseException] = []
        self._notices: deque[str] = deque([notice] if notice else [])
        writing = DatabaseConnection(
            path,
            leases,
            on_restored=self._note_restored,
            open_file=None if copy is None else _prepare_and_connect,
        )
        self._writer = WriterThread(writing, self._note_stall)
        self._open_searches()
        # On a full disk this is tried until there is room; `unsaved` is the reason meanwhile.
        self._first_write = self._writer.submit(lambda _: None)
        self.stop_orphans()
        self.wait_for_writes()

    @classmethod
    def open(cls, path: Path, *, clock: Callable[[], float] = time.time) -> Self:
        """Open or create the database.

        A damaged file is renamed and replaced by an empty one; `notice` reports it.

        Raises:
            StoreError: the schema is newer than supported, or the file cannot be opened or created.
        """
        try:
            unclean = lease.sweep(_lease_folder(path))
            notice = None
            try:
                _prepare(path, check=unclean)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                notice = _set_aside(path, error)
                _prepare(path, check=False)
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

    @property
    def _reader(self) -> sqlite3.Connection:
        """The connection to read from."""
        self._leave_copy()
        return self._reading.current() if self._copied is None else self._copied

    def _leave_copy(self) -> None:
        """Read the file from now on, if it took a write since it was copied."""
        if self._copy is not None and _succeeded(self._first_write):
            self._close_searches()
            self._close_copy()
            self._open_searches()

    def _close_copy(self) -> None:
        if self._copied is not None and self._copy is not None:
            self._copied.close()
            self._copy.close()
        self._copied = self._copy = None

    def _open_searches(self) -> None:
        self._message_search = BackgroundSearch(self._searching(), find_messages)
        self._tree_search = BackgroundSearch(self._searching(), self._find_trees)

    def _searching(self) -> Callable[[], sqlite3.Connection]:
        if self._copy is not None:
            return self._copy.connect
        return DatabaseConnection(self.file, _lease_folder(self.file)).current

    def _close_searches(self) -> None:
        self._message_search.close()
        self._tree_search.close()

    # Writes: queued, executed in order.

    def create_tree(self, tree_id: str, title: str, pointers: Sequence[Assignment] = ()) -> None:
        """Add an empty tree, with pointers that refer to no node."""
        now = self._clock()
        moves = tuple(pointers)

        def job(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO tree (id, title, created_at, updated_at) VALUES (?, ?, ?, ?)",
                (tree_id, title, now, now),
            )
            oplog.apply(connection, tree_id, moves, now)

        self._write(job)

    def add_nodes(
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
            row_from_node(node, self._lease.id if node.status == "streaming" else None)
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

        self._write(job)

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

        self._write(job, replaces=node.id)

    def set_token_ids(self, node: Node) -> None:
        """Save the token ids of a user turn, with the fingerprints of tokenizer and rendering."""
        row = dict(zip(NODE_COLUMNS, row_from_node(node, None)[:-1], strict=True))
        self._write(
            lambda c: c.execute(
                "UPDATE node SET token_ids = :token_ids, tokenizer = :tokenizer, "
                "template = :template WHERE id = :id",
                row,
            )
        )

    def set_passages(self, node: Node) -> None:
        """Save the passages that were found for a user node, or the check of an answer's citations."""
        row = dict(zip(NODE_COLUMNS, row_from_node(node, None)[:-1], strict=True))
        self._write(
            lambda c: c.execute(
                "UPDATE node SET context = :context, passages = :passages, n_passages = :n_passages, "
                "citations = :citations, checked_text = :checked_text WHERE id = :id",
                row,
            )
        )

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
        self._write(lambda c: oplog.record(c, tree_id, name, moves, now, joined=joined))

    def erase(self, tree_ids: Sequence[str]) -> int:
        """Delete trees for good, with their nodes, pointers, drafts and history; returns how many. Waits.

        Trees that are not archived are kept. Cannot be undone. What was deleted is gone from the file and
        from its journal, unless another process is reading at this moment.

        Raises:
            StoreError: the file takes no writes.
        """
        doomed = tuple(tree_ids)
        erased = self._run(lambda c: erase(c, doomed))
        if erased and self._copied is None:
            # A connection of its own: one with an unfinished read would refuse.
            with closing(connect(self.file)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return erased

    def undo(self, tree_id: str) -> str | None:
        """Undo the newest operation; returns its name, or None. Waits for the commit.

        Raises:
            StoreError: the file takes no writes.
        """
        now = self._clock()
        return self._run(lambda c: oplog.undo(c, tree_id, now))

    def redo(self, tree_id: str) -> str | None:
        """Redo the operation undone last; returns its name, or None. Waits for the commit.

        Raises:
            StoreError: the file takes no writes.
        """
        now = self._clock()
        return self._run(lambda c: oplog.redo(c, tree_id, now))

    def stop_orphans(self) -> None:
        """Set streaming nodes of dead writers to `stopped`; their saved text is kept."""
        folder = _lease_folder(self.file)
        writers = self._reader.execute(
            "SELECT DISTINCT writer FROM node WHERE status = 'streaming'"
        ).fetchall()
        dead = [w for (w,) in writers if w is None or not lease.is_alive(folder, w)]
        for writer in dead:
            self._write(partial(_stop_nodes_of, writer))

    # Drafts; see `drafts.py`.

    def write_draft(self, tree_id: str, job: Callable[[sqlite3.Connection], Any]) -> None:
        """Queue a change of a draft, which replaces an earlier one that has not been made."""
        self._write(job, replaces=f"draft {tree_id}")

    def draft_row(self, tree_id: str) -> tuple[str, str] | None:
        """Text and queued messages (JSON) of a conversation's draft, or None."""
        row: tuple[str, str] | None = self._reader.execute(
            "SELECT text, queued FROM draft WHERE tree_id = ?", (tree_id,)
        ).fetchone()
        return row

    def unsaved_drafts(self, after: float) -> list[str]:
        """The drafts since `after` whose conversations are not saved, newest first."""
        rows = self._reader.execute(
            "SELECT tree_id FROM draft WHERE updated_at >= ? AND tree_id NOT IN (SELECT id FROM tree) "
            "ORDER BY updated_at DESC",
            (after,),
        )
        return [str(tree_id) for (tree_id,) in rows]

    # Which process writes to a conversation.

    def claim(self, tree_id: str) -> lease.Claim:
        """Take the right to add to a conversation, which one process at a time has."""
        return self._tree_leases.claim(tree_id)

    def release(self, tree_id: str) -> None:
        """Give the right back once all queued writes are committed."""
        self._tree_leases.release_after(tree_id, self._writer.submit(lambda _: None))

    # Waiting and errors.

    def flush(self) -> None:
        """Wait until all queued writes are committed.

        Raises:
            StoreError: the file takes no writes, or a write queued since the last flush failed.
        """
        self._run(lambda _: None)
        failures, self._failures = self._failures, []
        if failures:
            raise self._not_saved(failures[0])

    def wait_for_writes(self) -> None:
        """Wait until all queued writes are committed or have failed; does not raise their errors.

        Returns at once while the file takes no writes.
        """
        if self.unsaved is None:
            self._writer.submit(lambda _: None, durable=False).exception()

    @property
    def unsaved(self) -> str | None:
        """Why queued writes cannot be committed at present, e.g. "database or disk is full"; else None."""
        error = self._writer.stalled
        return None if error is None else str(error)

    @property
    def saving(self) -> bool:
        """Whether a write is not committed yet."""
        return self._writer.busy

    def take_notice(self) -> str | None:
        """The next sentence for the user, each once: damage, failed writes, a full disk; else None."""
        return self._notices.popleft() if self._notices else None

    # Reads: committed data.

    def trees(
        self, query: str = "", *, archived: bool = False, unsaved: Sequence[TreeSummary] = ()
    ) -> list[TreeSummary]:
        """Trees that are not archived, or those that are, newest first; with a query, those that contain it.

        Args:
            query: a literal substring of the title or of a message; case is ignored. Each tree comes with
                the line of its newest message that contains it.
            archived: list the archived ones instead.
            unsaved: trees to list unless the file has them.
        """
        return find_trees(self._reader, TreeQuery(query, archived, tuple(unsaved)))

    def start_trees(
        self, query: str, *, archived: bool = False, unsaved: Sequence[TreeSummary] = ()
    ) -> "Future[list[TreeSummary]]":
        """`wait_for_writes`, then `trees`, on a thread of its own. A new call cancels the one before it."""
        self._leave_copy()
        return self._tree_search.start(TreeQuery(query, archived, tuple(unsaved)))

    def _find_trees(self, connection: sqlite3.Connection, asked: "TreeQuery") -> list[TreeSummary]:
        self.wait_for_writes()
        return find_trees(connection, asked)

    def tree(self, tree_id: str) -> TreeSummary | None:
        """A tree by id, archived or not; None if it does not exist."""
        row = self._reader.execute(f"{SUMMARY} WHERE id = ?", (tree_id,)).fetchone()
        return TreeSummary(*row) if row else None

    def written_since(self) -> bool:
        """Whether anyone, this process included, has written since the last call. Costs microseconds."""
        before = self._data_version
        (self._data_version,) = self._reader.execute("PRAGMA data_version").fetchone()
        return before != self._data_version

    def list_version(self) -> tuple[object, ...]:
        """Differs after a conversation was added, continued, archived or erased. One pass over the trees."""
        row: tuple[object, ...] = self._reader.execute(
            "SELECT count(*), max(updated_at), sum(archived) FROM tree"
        ).fetchone()
        return row

    def head(self, tree_id: str, name: str = "HEAD") -> str | None:
        """The node id of a head, or None."""
        row = self._reader.execute(
            "SELECT node_id FROM head WHERE tree_id = ? AND name = ?", (tree_id, name)
        ).fetchone()
        return str(row[0]) if row else None

    def branch_tree(self, tree_id: str) -> BranchTree:
        """All nodes of a tree with its pointers, without token data."""
        nodes = self._reader.execute(
            f"SELECT {', '.join(VIEW_FIELDS)} FROM node WHERE tree_id = ? ORDER BY n",  # noqa: S608
            (tree_id,),
        )
        checkout = self._reader.execute(
            "SELECT parent_id, child_id FROM checkout WHERE tree_id = ?", (tree_id,)
        )
        heads = self._reader.execute(
            "SELECT name, node_id FROM head WHERE tree_id = ? ORDER BY used_at", (tree_id,)
        )
        sources = self._reader.execute(
            "SELECT node_id, names FROM source WHERE tree_id = ?", (tree_id,)
        )
        return BranchTree(map(view_from_row, nodes), dict(checkout), dict(heads), dict(sources))

    def contents(self, tree_id: str) -> TreeContents | None:
        """A tree with all its nodes and pointers; None if it does not exist."""
        summary = self.tree(tree_id)
        if summary is None:
            return None
        pointers = self.branch_tree(tree_id).pointers()
        return TreeContents(tree_id, summary.title, tuple(self.nodes(tree_id)), tuple(pointers))

    def restore(self, contents: TreeContents) -> None:
        """Add a tree that `contents` returned; its ids must not be in use.

        It cannot be undone: that would leave an empty conversation.
        """
        self.create_tree(contents.tree_id, contents.title)
        if contents.nodes:
            self.add_nodes(contents.nodes, name=None, changes=contents.pointers)

    def search(self, query: str, limit: int = MAX_HITS) -> list[SearchHit]:
        """Messages that contain the query, in every branch of every tree that is not archived, newest first.

        The query is a literal substring; case is ignored. Answers in generation are not found.
        """
        return find_messages(self._reader, query, limit)

    def start_search(self, query: str) -> "Future[list[SearchHit]]":
        """`search` on a thread of its own. A new search cancels the one before it."""
        self._leave_copy()
        return self._message_search.start(query)

    def node(self, node_id: str) -> Node | None:
        """A node by id, or None."""
        row = self._reader.execute(
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
        rows = self._reader.execute(query, (node_id,))
        return [self._node(row) for row in rows]

    def nodes(self, tree_id: str) -> Iterator[Node]:
        """Every node of a tree, parents before children."""
        rows = self._reader.execute(
            f"SELECT {', '.join(NODE_COLUMNS)} FROM node WHERE tree_id = ? ORDER BY n",  # noqa: S608
            (tree_id,),
        )
        return map(self._node, rows)

    def _node(self, row: tuple[Any, ...]) -> Node:
        """The node of a row, with its images."""
        return with_images(self._reader, node_from_row(row))

    def prompts(self, limit: int) -> list[str]:
        """The latest `limit` user messages of all trees, oldest first."""
        rows = self._reader.execute(
            "SELECT text FROM node WHERE kind = 'user' ORDER BY created_at DESC, n DESC LIMIT ?",
            (limit,),
        )
        return [str(row[0]) for row in rows][::-1]

    def check_integrity(self) -> None:
        """Verify the file, foreign keys, the full-text index and the parents of nodes.

        Raises:
            StoreError: the first violation, or a queued write failed.
        """
        self.flush()
        self._run(_check)

    def close(self) -> None:
        """Commit queued writes and close. Idempotent."""
        self._writer.close()
        self._close_searches()
        self._close_copy()
        self._reading.close()
        self._tree_leases.release_all()
        self._lease.release()

    # Internal.

    def _write(
        self, job: Callable[[sqlite3.Connection], Any], *, replaces: str | None = None
    ) -> None:
        self._writer.submit(job, replaces=replaces).add_done_callback(self._note_failure)

    def _note_failure(self, future: "Future[Any]") -> None:
        error = future.exception()
        if error is not None:
            log.error("conversation store: %s", error)
            self._failures.append(error)
            self._notices.append(str(self._not_saved(error)))

    def _note_stall(self, error: sqlite3.Error | None) -> None:
        self._notices.append(
            f"Conversations are saved to {self.file} again."
            if error is None
            else f"Conversations cannot be saved to {self.file} ({error}): they are kept in memory "
            "and saved as soon as that is possible."
        )

    def _note_restored(self) -> None:
        self._notices.append(
            f"The conversation database {self.file} was removed while it was in use: it is written "
            "again, with every conversation."
        )

    def _not_saved(self, error: BaseException) -> StoreError:
        return StoreError(f"The last messages could not be saved to {self.file} ({error}).")

    def _run(self, job: Callable[[sqlite3.Connection], T]) -> T:
        try:
            result: T = self._writer.submit(job, durable=False).result()
        except sqlite3.Error as error:
            raise self._not_saved(error) from error
        return result


def _lease_folder(path: Path) -> Path:
    return path.with_name(path.name + ".writers")


def _succeeded(future: "Future[Any]") -> bool:
    return future.done() and future.exception() is None


def _prepare_and_connect(path: Path) -> sqlite3.Connection:
    """A connection to a file that could not be prepared before.

    Raises:
        sqlite3.Error: it still cannot.
    """
    try:
        _prepare(path, check=False)
    except OSError as error:
        raise sqlite3.OperationalError(str(error)) from error
    return connect(path)


def _prepare(path: Path, *, check: bool) -> None:
    """Create folder (0700) and file (0600) if missing, set WAL mode and migrate the schema."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    create_private_file(path)
    path.chmod(0o600)
    connection = connect(path)
    try:
        if check:
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise sqlite3.DatabaseError(problem)
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, path)
        connection.execute("SELECT count(*) FROM (SELECT 1 FROM tree LIMIT 1)").fetchone()
    finally:
        connection.close()


def _set_aside(path: Path, error: sqlite3.Error) -> str:
    """Rename a damaged database and its WAL files; returns the notice for the user."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.stem}.damaged-{stamp}{path.suffix}")
    for suffix in ("", "-wal", "-shm"):
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            companion.rename(aside.with_name(aside.name + suffix))
    return (
        f"The conversation database was damaged ({error}): it was renamed to {aside}, and a new one "
        "was created."
    )


def _stop_nodes_of(writer: str | None, connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE node SET status = 'stopped' WHERE status = 'streaming' AND writer IS ?", (writer,)
    )


def _touch(connection: sqlite3.Connection, tree_id: str, now: float) -> None:
    connection.execute("UPDATE tree SET updated_at = ? WHERE id = ?", (now, tree_id))


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
