"""`Following`: what other processes add to the conversations while they are shown here."""

from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.storage.store import Store
from engine.conversations.storage.store_news import StoreNews
from engine.conversations.text_guard import TextGuard
from engine.conversations.tree import NodeDelta, NodeStatus, view_of


class Following:
    """Reads what other processes have added. Used by the session's thread.

    Each call costs microseconds if nothing was written.

    Args:
        store: what the other processes write to.
        loaded: the conversations in memory.
        guard: the text of messages as they are shown.
    """

    def __init__(self, store: Store, loaded: LoadedConversations, guard: TextGuard) -> None:
        self._store = store
        self._loaded = loaded
        self._guard = guard
        self._news = StoreNews(store.reads)
        self._followed: list[NodeDelta] = []

    def follow_path(self) -> bool:
        """Read what was added to the end of the open path; whether `take` has news of it.

        If another process opened another branch of the conversation, the open path stays as it is, see
        `follow_branches`; the next message here reports it.
        """
        current = self._loaded.current
        if not current.saved or current.answers or not current.nodes or self._store.writes.saving:
            return False
        last = current.nodes[-1]
        if last.status is NodeStatus.STREAMING:
            self._store.nodes.stop_orphans()
        head = self._store.trees.head(current.id) if self._news.of_path() else None
        path = self._store.nodes.path(head) if head else []
        begun = len(current.nodes)
        if [node.id for node in path[:begun]] != [node.id for node in current.nodes]:
            self._news.other_branch = bool(path)
            return False
        grown, added = path[begun - 1], path[begun:]
        if not added and (grown.text, grown.status) == (last.text, last.status):
            return False
        self._loaded.read_path(current)
        before, after = (self._guard.shown(current.id, view_of(one)).text for one in (last, grown))
        text = after.removeprefix(before)
        self._followed.append(NodeDelta(grown.id, text, grown.status, grown.finish, grown.error))
        self._followed += [
            NodeDelta(node.id, "", node.status, node.finish, node.error) for node in added
        ]
        return True

    def follow_branches(self) -> bool:
        """Read the branches that were added; whether there are any. Call it after `follow_path`.

        The open path stays where it is.
        """
        current = self._loaded.current
        if not self._news.other_branch or current.answers or self._store.writes.saving:
            return False
        self._news.other_branch = False
        tree, head = self._store.trees.branch_tree(current.id), current.head
        if head is None or head not in tree or tree[head].pruned_at is not None:
            return False  # the next message here reports it
        tree.apply(tree.moves_to(head))
        current.tree = tree
        current.version += 1
        return True

    def list_changed(self) -> bool:
        """Whether conversations were added, continued, archived or erased since the last call."""
        return not self._store.writes.saving and self._news.of_list()

    def take(self) -> list[NodeDelta]:
        """The changes that `follow_path` has read since the last call."""
        followed, self._followed = self._followed, []
        return followed
