"""`Searches`: conversations and messages that contain a text, found at once or on threads of their own.

`finding.py` has the queries, `background_search.py` the threads. All read committed data.
"""

import sqlite3
from collections.abc import Sequence
from concurrent.futures import Future

from engine.conversations.storage.background_search import BackgroundSearch
from engine.conversations.storage.finding import MAX_HITS, TreeQuery, find_messages, find_trees
from engine.conversations.storage.queued_writes import QueuedWrites
from engine.conversations.storage.read_connections import ReadConnections
from engine.conversations.tree import SearchHit, TreeSummary


class Searches:
    """The searches of one database. Used by the thread of the store.

    Args:
        reads: what is searched.
        writes: a search for conversations waits for them.
    """

    def __init__(self, reads: ReadConnections, writes: QueuedWrites) -> None:
        self._reads = reads
        self._writes = writes
        self._open()
        reads.on_copy_left = self._reopen

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
        return find_trees(self._reads.current(), TreeQuery(query, archived, tuple(unsaved)))

    def start_trees(
        self, query: str, *, archived: bool = False, unsaved: Sequence[TreeSummary] = ()
    ) -> "Future[list[TreeSummary]]":
        """Wait for queued writes, then `trees`, on a thread of its own. Cancels the one before it."""
        self._reads.leave_copy()
        return self._of_trees.start(TreeQuery(query, archived, tuple(unsaved)))

    def messages(self, query: str, limit: int = MAX_HITS) -> list[SearchHit]:
        """Messages that contain the query, in every branch of every tree that is not archived, newest first.

        The query is a literal substring; case is ignored. Answers in generation are not found.
        """
        return find_messages(self._reads.current(), query, limit)

    def start_messages(self, query: str) -> "Future[list[SearchHit]]":
        """`messages` on a thread of its own. Cancels the one before it."""
        self._reads.leave_copy()
        return self._of_messages.start(query)

    def close(self) -> None:
        """Cancel what runs and end the threads. Idempotent."""
        self._of_messages.close()
        self._of_trees.close()

    def _open(self) -> None:
        self._of_messages = BackgroundSearch(self._reads.separate(), find_messages)
        self._of_trees = BackgroundSearch(self._reads.separate(), self._find_trees)

    def _reopen(self) -> None:
        """Search the file from now on, not the copy."""
        self.close()
        self._open()

    def _find_trees(self, connection: sqlite3.Connection, asked: TreeQuery) -> list[TreeSummary]:
        self._writes.wait()
        return find_trees(connection, asked)
