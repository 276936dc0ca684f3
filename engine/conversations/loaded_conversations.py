"""`LoadedConversations`: the conversations in memory: the open one, and those that are not all on disk yet.

It owns every `Conversation` of a session, reads it from the store, and gives out the right to change it,
which one process at a time has.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from engine.api.errors import InvalidRequest
from engine.conversations.answering import Answering
from engine.conversations.conversation import Conversation
from engine.conversations.errors import ConversationChanged
from engine.conversations.storage.store import Store
from engine.conversations.titles import UNTITLED
from engine.conversations.tree import NodeStatus, awaits_agent


class LoadedConversations:
    """The conversations of one session that are in memory. Used by its thread.

    Args:
        store: where they are saved.
        answering: has those whose answers run.
        new_id: returns increasing ids.
        system_prompt: system prompt of new conversations.
        system_required: whether it is kept for chat templates that do not support one.

    Attributes:
        current: the open conversation. There is none before the first `open` or `open_empty`.
    """

    current: Conversation

    def __init__(
        self,
        store: Store,
        answering: Answering,
        *,
        new_id: Callable[[], str],
        system_prompt: str | None,
        system_required: bool,
    ) -> None:
        self._store = store
        self._answering = answering
        self._new_id = new_id
        self._default_system_prompt = system_prompt
        self._system_required = system_required
        # Conversations that were written to, until all is on disk: the store may not have them yet.
        self._written: dict[str, Conversation] = {}
        self._renamed: dict[str, str] = {}  # titles of others, until they are on disk

    @property
    def written(self) -> Mapping[str, Conversation]:
        """The conversations that were written to and may not be on disk yet, by id."""
        return self._written

    def open_empty(self, tree_id: str | None = None) -> None:
        """Open an empty conversation; with a new id unless one is given."""
        self.current = Conversation(
            id=tree_id or self._new_id(),
            title=UNTITLED,
            system_prompt=self._default_system_prompt,
            system_optional=not self._system_required,
        )

    def open(self, tree_id: str) -> None:
        """Open a conversation of the store.

        Raises:
            InvalidRequest: there is no such conversation.
        """
        self.forget_saved()
        self.current = self._unsaved(tree_id) or self._load(tree_id)

    def find(self, tree_id: str) -> Conversation | None:
        """The conversation, if it is open or more of it is in memory than on disk."""
        return self.current if tree_id == self.current.id else self._unsaved(tree_id)

    def set_title(self, tree_id: str, title: str) -> None:
        """Set the title of a conversation in memory, or the one that it is loaded with."""
        conversation = self.find(tree_id)
        if conversation is not None:
            conversation.title = title
        else:
            self._renamed[tree_id] = title

    def forget(self, tree_id: str) -> None:
        """Forget a conversation that is not open: it is archived or erased."""
        self._written.pop(tree_id, None)

    def forget_saved(self) -> None:
        """Forget the conversations whose messages are all on disk."""
        if not self._store.writes.saving:
            self._renamed.clear()
            self._written = {
                tree_id: conversation
                for tree_id, conversation in self._written.items()
                if conversation.answers
            }

    def read_path(self, conversation: Conversation) -> None:
        """Read tree and path from the store; answers that run here are kept."""
        conversation.tree = self._store.trees.branch_tree(conversation.id)
        head = conversation.tree.head
        conversation.nodes = self._store.nodes.path(head) if head else []
        conversation.version += 1
        conversation.system_prompt = (
            conversation.sent_system_prompt() if head else self._default_system_prompt
        )

    @contextmanager
    def writing(self) -> Iterator[Conversation]:
        """The right to change the open conversation; kept while an answer runs, otherwise given back.

        Raises:
            InvalidRequest: another process is answering in it.
            ConversationChanged: another process has added to it.
        """
        conversation = self.current
        claim = self._store.leases.claim(conversation.id)
        if claim == "elsewhere":
            raise InvalidRequest(
                "Another Pravāha process is generating this conversation's answer: wait until it "
                "has finished."
            )
        try:
            if claim == "new" and conversation.saved:
                self._reload_if_changed(conversation)
            self._written[conversation.id] = conversation
            yield conversation
        finally:
            if not conversation.answers:
                self._store.leases.release(conversation.id)

    def _unsaved(self, tree_id: str) -> Conversation | None:
        """The conversation, if more of it is in memory than on disk."""
        return self._written.get(tree_id) or self._answering.running(tree_id)

    def _load(self, tree_id: str) -> Conversation:
        """Read a conversation that is not in `_written`: its messages are on disk, nothing is waited for."""
        summary = self._store.trees.get(tree_id)
        if summary is None:
            raise InvalidRequest(f"There is no conversation {tree_id}.")
        title = self._renamed.get(tree_id, summary.title)
        conversation = Conversation(tree_id, title, None, saved=True)
        self.read_path(conversation)
        return conversation

    def _reload_if_changed(self, conversation: Conversation) -> None:
        """Load the conversation again if another process has added to it, and raise.

        What this process added is on disk: its claim was given back after that.
        """
        last = conversation.nodes[-1] if conversation.nodes else None
        head = self._store.trees.head(conversation.id)
        known = None if last is None else last.id
        if head == known and (
            last is None or last.status is not NodeStatus.STREAMING or awaits_agent(last)
        ):
            return
        self._store.nodes.stop_orphans()  # nobody else writes to it: its answer was interrupted
        self._store.writes.wait()
        self.read_path(conversation)
        raise ConversationChanged(
            "This conversation was continued in another Pravāha process: its new messages were "
            "loaded. Send yours again if it still fits."
        )
