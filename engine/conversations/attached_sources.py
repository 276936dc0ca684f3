"""`AttachedSources`: the collections that the open branch is answered from; see `passage_source`."""

from collections.abc import Sequence

from engine.conversations.grounding import found_of
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.open_nodes import OpenNodes
from engine.conversations.passage_source import FoundPassages
from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeKind


class AttachedSources:
    """The collections of the open path, and what was found in them. Used by the session's thread.

    Args:
        store: where attachments are saved.
        loaded: the conversations in memory.
        nodes: the messages of the open conversation.
    """

    def __init__(self, store: Store, loaded: LoadedConversations, nodes: OpenNodes) -> None:
        self._store = store
        self._loaded = loaded
        self._nodes = nodes

    @property
    def names(self) -> tuple[str, ...]:
        """The collections that the next message of the open path is answered from."""
        current = self._loaded.current
        return current.tree.sources_after(current.head)

    def attach(self, name: str, *, instead_of: str | None = None) -> bool:
        """Answer the next messages of the open branch from a collection, too; False if they are already.

        Forks after this place keep it. It can be undone once the conversation has a message.

        Args:
            name: what the `PassageSource` finds passages in.
            instead_of: what is detached at the same time, if it is attached.

        Raises:
            InvalidRequest: another process is answering in the conversation.
            ConversationChanged: another process has added to it.
        """
        if name in self.names:
            return False
        kept = [one for one in self.names if one != instead_of]
        self._set((*kept, name), f"attach {name}")
        return True

    def detach(self, name: str) -> bool:
        """The opposite of `attach`, for the open branch from here on; False if it is not attached."""
        if name not in self.names:
            return False
        self._set([one for one in self.names if one != name], f"detach {name}")
        return True

    def passages_of(self, node_id: str) -> FoundPassages | None:
        """The passages that a message, or the answer to it, was given; None if none were sought.

        Raises:
            InvalidRequest: the message was pruned, or is not on disk yet and cannot be read at present.
        """
        current = self._loaded.current
        if node_id not in current.tree and node_id not in current.answers:
            return None
        self._nodes.view_of(node_id)
        users = [node for node in self._nodes.path_to(node_id) if node.kind is NodeKind.USER]
        return found_of(users[-1]) if users else None

    def _set(self, names: Sequence[str], operation: str) -> None:
        with self._loaded.writing() as conversation:
            changes = conversation.tree.attaches(conversation.head, names)
            if conversation.saved:
                self._store.operations.assign(conversation.id, operation, changes)
            conversation.tree.apply(changes)
            conversation.version += 1
