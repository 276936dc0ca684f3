"""`NewNodes`: nodes that are added to a conversation, in memory and in the store.

Nodes never change once they are saved, except that a turn gets its token ids when it is first in a prompt.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.api.image import Image
from engine.api.request import FinishReason
from engine.conversations.assignment import Assignment
from engine.conversations.branch_tree import FORK, MAIN
from engine.conversations.conversation import Conversation
from engine.conversations.storage.store import Store
from engine.conversations.titles import UNTITLED, default_title
from engine.conversations.tree import Node, NodeKind, NodeStatus, Verdict, view_of


class NewNodes:
    """Adds nodes to conversations. Used by the session's thread, which has the right to change them.

    Args:
        store: where they are saved.
        wall: seconds since the epoch, for `created_at`.
        new_id: returns increasing ids.
    """

    def __init__(
        self, store: Store, *, wall: Callable[[], float], new_id: Callable[[], str]
    ) -> None:
        self._store = store
        self._wall = wall
        self._new_id = new_id

    def make(
        self,
        conversation: Conversation,
        parent: Node | None,
        kind: NodeKind,
        text: str,
        status: NodeStatus = NodeStatus.DONE,
        *,
        images: tuple[Image, ...] = (),
    ) -> Node:
        """A node that is not saved yet."""
        return Node(
            id=self._new_id(),
            tree_id=conversation.id,
            parent_id=None if parent is None else parent.id,
            kind=kind,
            text=text,
            status=status,
            created_at=self._wall(),
            n_images=len(images) or None,
            images=images,
        )

    def add(
        self,
        conversation: Conversation,
        path: Sequence[Node],
        nodes: Sequence[Node],
        operation: str,
        *,
        end: Node,
        branch: str | None = None,
        follow: bool = True,
        more: Sequence[Assignment] = (),
    ) -> None:
        """Save nodes and open the conversation at one of them.

        Args:
            conversation: the conversation, saved.
            path: the nodes before the first new one, root first.
            nodes: new nodes, parents before children.
            operation: name in the oplog.
            end: the new node to open the conversation at.
            branch: name of a new branch that ends there; None moves the branch that ended at HEAD, or
                begins one if none did.
            follow: whether HEAD moves there.
            more: further changes of the same operation.
        """
        tree = conversation.tree
        by_id = {node.id: node for node in nodes}
        chain = [end]
        while (parent := by_id.get(chain[-1].parent_id or "")) is not None:
            chain.append(parent)
        whole = [*path, *reversed(chain)]
        changes: list[Assignment] = []
        if follow:
            changes = tree.moves_to(end.id, [node.id for node in whole])
            name = branch or tree.branch_at(tree.head)
            if name is None:  # the first branch, or one that goes on from an unnamed leaf
                name = tree.fresh_name(FORK) if tree.branches() else MAIN
        else:
            name = branch or (tree.branch_at(path[-1].id) if path else None)
        if name is not None:
            changes.append(Assignment("head", name, end.id))
        changes += more
        self._store.nodes.add(nodes, name=operation, changes=changes)
        for node in nodes:
            tree.add(view_of(node))
        tree.apply(changes)
        if follow:
            conversation.nodes = whole
        conversation.version += 1

    def begin_exchange(self, conversation: Conversation, question: str, *, by: str) -> str:
        """Save a message and the place of an agent's answer after HEAD; the answer's id."""
        path = list(conversation.nodes)
        asked = self.make(conversation, path[-1] if path else None, NodeKind.USER, question)
        answered = self.make(conversation, asked, NodeKind.ASSISTANT, "", NodeStatus.STREAMING)
        answered = replace(answered, model=by)
        self.create_tree(conversation, [asked])
        self.add(conversation, path, [asked, answered], "add", end=answered)
        return answered.id

    def finish_exchange(
        self,
        conversation: Conversation | None,
        answered: Node,
        others: Sequence[tuple[str, Verdict | None]] = (),
    ) -> None:
        """Save the answer of an agent in its place.

        Args:
            conversation: of the answer; None if it is only on disk.
            answered: the node of `begin_exchange` with its final text and status.
            others: texts of its siblings, with what tests say about each.
        """
        self._store.nodes.update_streaming(answered)
        beside = [
            replace(
                answered,
                id=self._new_id(),
                text=text,
                finish=(verdict or FinishReason.STOP).value,
                created_at=self._wall(),
            )
            for text, verdict in others
        ]
        if beside:
            self._store.nodes.add(beside, name=None, changes=())
        if conversation is None:
            self._store.writes.wait()  # it is read from disk when it is opened
        elif answered.id in conversation.tree:
            conversation.tree.add(view_of(answered))
            for node in beside:
                conversation.tree.add(view_of(node))
            conversation.nodes = [
                answered if node.id == answered.id else node for node in conversation.nodes
            ]
            conversation.version += 1

    def create_tree(self, conversation: Conversation, asked: Sequence[Node]) -> None:
        """Save a conversation that is not saved yet; its title is made from the last of these nodes."""
        if conversation.saved:
            return
        if conversation.title == UNTITLED:
            conversation.title = default_title(asked[-1].text)
        settings = conversation.tree.setting_pointers()
        self._store.trees.create(conversation.id, conversation.title, settings)
        conversation.saved = True

    def set_turn_ids(self, conversation: Conversation, tokenized: Sequence[Node]) -> None:
        """Save the token ids of newly tokenized turns."""
        if not tokenized:
            return
        fresh = {node.id: node for node in tokenized}
        for index, node in enumerate(conversation.nodes):
            found = fresh.get(node.id)
            if found is not None:  # its text may have a summary before it
                conversation.nodes[index] = replace(
                    node,
                    token_ids=found.token_ids,
                    tokenizer=found.tokenizer,
                    template=found.template,
                )
        for node in tokenized:
            if node.id in conversation.tree:
                self._store.nodes.set_token_ids(node)
