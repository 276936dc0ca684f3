"""`OpenNodes`: the messages of the open conversation with their token data, from memory or the store."""

from engine.api.errors import InvalidRequest
from engine.api.image import Image
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.storage.store import Store
from engine.conversations.tree import Node, NodeView


class OpenNodes:
    """The nodes of all branches of the open conversation. Used by the session's thread.

    Args:
        store: read for nodes that are not in memory.
        loaded: the conversations in memory.
    """

    def __init__(self, store: Store, loaded: LoadedConversations) -> None:
        self._store = store
        self._loaded = loaded

    def view_of(self, node_id: str) -> NodeView:
        """The view of a node that was not pruned.

        Raises:
            InvalidRequest: no such node.
        """
        tree = self._loaded.current.tree
        if node_id not in tree or tree[node_id].pruned_at is not None:
            raise InvalidRequest("The message is not in this conversation any more.")
        return tree[node_id]

    def finished(self, node_id: str) -> NodeView:
        """The view of a node whose answer does not run.

        Raises:
            InvalidRequest: no such node, or its answer is running.
        """
        node = self.view_of(node_id)
        if node_id in self._loaded.current.answers:
            raise InvalidRequest("The answer is running: stop it first.")
        return node

    def path_to(self, node_id: str | None) -> list[Node]:
        """The nodes from the root to this one, pruned or not, with token data and passages; of None none.

        Raises:
            InvalidRequest: one is not on disk yet and cannot be read at present.
        """
        conversation = self._loaded.current
        ids = conversation.tree.path(node_id)
        known = {node.id: node for node in conversation.nodes}
        for answer in conversation.answers.values():
            known |= {node.id: node for node in answer.asked}
            known[answer.node_id] = answer.node()
        if not all(one in known for one in ids):
            self._store.writes.wait()
            stored = self._store.nodes.path(ids[-1])
            known |= {node.id: node for node in stored if node.id not in known}
        if any(one not in known for one in ids):
            raise InvalidRequest(
                "The branch cannot be read at present: its messages are not on disk yet."
            )
        return [known[one] for one in ids]

    def full(self, node_id: str) -> Node:
        """A node with its token data.

        Raises:
            InvalidRequest: it is not on disk yet and cannot be read at present.
        """
        return self.path_to(node_id)[-1]

    def images_of(self, node_id: str) -> tuple[Image, ...]:
        """The images of a message.

        Raises:
            InvalidRequest: no such message, or it is not on disk yet and cannot be read at present.
        """
        self.view_of(node_id)
        return self.full(node_id).images
