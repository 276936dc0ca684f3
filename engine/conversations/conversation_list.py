"""`ConversationList`: the conversations of a store: found, opened, renamed, archived and erased."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from engine.api.errors import InvalidRequest
from engine.conversations.answering import Answering
from engine.conversations.assignment import Assignment
from engine.conversations.drafts import Drafts
from engine.conversations.importing import read_conversation
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.storage.store import Store
from engine.conversations.text_guard import TextGuard
from engine.conversations.titles import title_of
from engine.conversations.tree import SearchHit, TreeSummary


class ConversationList:
    """The conversations of one session. Used by its thread.

    Args:
        store: where they are saved.
        loaded: those in memory.
        answering: runs their answers.
        drafts: their unsent texts.
        guard: forgets erased conversations.
        new_id: returns increasing ids.
    """

    def __init__(
        self,
        store: Store,
        loaded: LoadedConversations,
        answering: Answering,
        drafts: Drafts,
        guard: TextGuard,
        *,
        new_id: Callable[[], str],
    ) -> None:
        self._store = store
        self._loaded = loaded
        self._answering = answering
        self._drafts = drafts
        self._guard = guard
        self._new_id = new_id

    # Finding.

    def find(self, query: str = "", *, archived: bool = False) -> list[TreeSummary]:
        """Saved conversations, newest first; with a query, those that contain it. Waits for queued writes.

        Args:
            query: a text that the title or a message contains; case is ignored.
            archived: list the archived ones instead.
        """
        self._store.writes.wait()
        unsaved = () if archived else self._unsaved_summaries(query)
        return self._store.searches.trees(query, archived=archived, unsaved=unsaved)

    def start_find(self, query: str, *, archived: bool = False) -> "Future[list[TreeSummary]]":
        """`find` in the background. A new call cancels the one before it."""
        unsaved = () if archived else self._unsaved_summaries(query)
        return self._store.searches.start_trees(query, archived=archived, unsaved=unsaved)

    def find_messages(self, query: str) -> list[SearchHit]:
        """Messages that contain the query, in every branch of every conversation, newest first."""
        self._store.writes.wait()
        return self._store.searches.messages(query)

    def start_find_messages(self, query: str) -> "Future[list[SearchHit]]":
        """`find_messages` in the background; does not wait for queued writes.

        A new call cancels the one before it.
        """
        return self._store.searches.start_messages(query)

    def _unsaved_summaries(self, query: str) -> tuple[TreeSummary, ...]:
        """The conversations that contain the query and may not be on disk yet."""
        self._loaded.forget_saved()
        return tuple(
            conversation.summary()
            for conversation in self._loaded.written.values()
            if conversation.contains(query.strip())
        )

    # Opening. A running answer continues in the background.

    def open(self, tree_id: str) -> None:
        """Open another conversation.

        Raises:
            InvalidRequest: there is no such conversation.
        """
        current = self._loaded.current
        if tree_id != current.id or current.saved:
            self._loaded.open(tree_id)

    def open_new(self) -> str:
        """Open an empty conversation; returns its id.

        It is the one with an unsent text, if there is one.
        """
        self._loaded.forget_saved()
        written = self._loaded.written
        self._loaded.open_empty(self._drafts.claim_unsaved_conversation(sent=written))
        return self._loaded.current.id

    def open_last_used(self) -> None:
        """Open the newest conversation, or the empty one with a newer draft."""
        newest = self._store.searches.trees()[:1]
        unsaved = self._drafts.claim_unsaved_conversation(newest[0].updated_at if newest else 0.0)
        if newest and unsaved is None:
            self._loaded.open(newest[0].id)
        else:
            self._loaded.open_empty(unsaved)

    def add(self, text: str) -> None:
        """Add the conversation in a text and open it; formats as in `importing`.

        Raises:
            InvalidRequest: the text is no conversation; nothing was added.
            StoreError: the file takes no writes.
        """
        contents = read_conversation(text, new_id=self._new_id, now=time.time())
        self._store.trees.restore(contents)
        self._store.writes.flush()
        self.open(contents.tree_id)

    # Changing.

    def rename(self, tree_id: str, title: str) -> None:
        """Rename a conversation; can be undone."""
        title = title_of(title)
        conversation = self._loaded.find(tree_id)
        self._loaded.set_title(tree_id, title)
        if conversation is None or conversation.saved:
            self._store.operations.assign(tree_id, "rename", [Assignment("title", "", title)])

    def archive(self, tree_id: str) -> None:
        """Archive a conversation: it is no longer listed, its nodes are kept. Stops its answer."""
        conversation = self._loaded.find(tree_id)
        if conversation is not None:
            self._answering.stop_all(conversation)
        if conversation is None or conversation.saved:
            self._store.operations.assign(tree_id, "archive", [Assignment("archived", "", 1)])
        self._loaded.forget(tree_id)
        self._drafts.forget(tree_id)
        if tree_id == self._loaded.current.id:
            self.open_new()

    def unarchive(self, tree_id: str) -> None:
        """List an archived conversation again."""
        self._store.operations.assign(tree_id, "unarchive", [Assignment("archived", "", 0)])

    def erase(self, tree_ids: Sequence[str]) -> int:
        """Delete archived conversations for good; returns how many. Cannot be undone.

        Raises:
            InvalidRequest: another process is answering in one of them; nothing was deleted.
            StoreError: the file takes no writes.
        """
        claimed: list[str] = []
        try:
            for tree_id in tree_ids:
                if self._store.leases.claim(tree_id) == "elsewhere":
                    raise InvalidRequest(
                        "Another Pravāha process is generating an answer of one of them: wait until it "
                        "has finished."
                    )
                claimed.append(tree_id)
            current = self._loaded.current
            if current.id in tree_ids:
                self._answering.stop_all(current)
                self.open_new()
            erased = self._store.trees.erase(tree_ids)
            self._guard.forget(tree_ids)
            return erased
        finally:
            for tree_id in claimed:
                self._store.leases.release(tree_id)
