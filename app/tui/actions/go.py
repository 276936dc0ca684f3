"""Keys that move in the conversation tree: siblings, branch points, branches, bookmarks, the tree pane.

In the branch tree, `h` `l` `J` `K` move its cursor and only `enter` opens a branch. On the messages, `h`
and `l` open the sibling, because it is to be seen there.
"""

from app.tui.actions.guarded import guarded
from app.tui.actions.tree import TreeActions
from app.tui.chat_screen import ChatScreen
from app.tui.glyphs import Glyphs
from app.tui.screen_layout import ScreenLayout
from app.tui.selection import Selection
from app.tui.view.tree_lines import TreeMarks, TreeRow, build_tree_line
from app.tui.widgets.branches import BranchPane, BranchTreeView
from app.tui.widgets.choose_node import ChooseNode
from app.tui.widgets.conversations import Conversations
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind

_CHOICE_CELLS = 56


class GoActions:
    """Moves in the tree of the open conversation."""

    def __init__(
        self,
        screen: ChatScreen,
        selection: Selection,
        layout: ScreenLayout,
        tree: TreeActions,
        glyphs: Glyphs,
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._layout = layout
        self._tree = tree
        self._glyphs = glyphs
        self._came_from: str | None = None

    @property
    def _session(self) -> TreeSession:
        return self._screen.session

    @property
    def _pane(self) -> BranchPane:
        return self._screen.main.query_one(BranchPane)

    @property
    def _view(self) -> BranchTreeView:
        return self._pane.tree_view

    @property
    def _transcript(self) -> Transcript:
        return self._screen.main.query_one(Transcript)

    # The panes of the left column.

    async def toggle(self) -> None:
        """Focus the branches, then the conversations, then the prompt."""
        if self._screen.main.query_one(Conversations).has_focus_within:
            self._layout.close_overlay()
            self._layout.focus_prompt()
        elif self._view.has_focus or not (self._pane.display or self._session.tree.branched):
            self._layout.show_list()
        else:
            self.open_tree()

    def open_tree(self) -> None:
        """Show and focus the branch tree of the open conversation, with the cursor on the selected node."""
        self._view.move_to(self._selection.node_id or self._session.head)
        self._layout.show_left_column()
        self._pane.open()

    def close_tree(self) -> None:
        """Hide a tree that was shown on request, and focus the messages."""
        self._layout.close_overlay()
        self._pane.close()
        self._layout.focus_messages()

    def open_tree_at_last_question(self) -> None:
        """Show the branch tree with the cursor on the last message of the user."""
        users = [node.id for node in self._session.path() if node.kind is NodeKind.USER]
        if users:
            self.open_tree()
            self._view.move_to(users[-1])

    # Going to nodes.

    async def to(self, node_id: str) -> None:
        """Open the node's branch, if it is another one, and select the node."""
        tree = self._session.tree
        if node_id not in tree or tree[node_id].pruned_at is not None:
            raise InvalidRequest("The message is not in this conversation any more.")
        if node_id not in tree.path(tree.head):
            before = self._session.head
            self._session.branches.adopt(node_id)
            self._came_from = before
            await self._screen.show_chat()
        await self._transcript.select_node(node_id)
        self._view.move_to(node_id)

    async def enter(self) -> None:
        """Open the node's branch; on the open branch, edit the message or continue from the answer."""
        node_id = self._selection.node_id
        tree = self._session.tree
        if node_id is None or node_id == tree.head:
            self._layout.close_overlay()
            self._layout.focus_prompt()
        elif node_id not in tree.path(tree.head):
            await self.to(node_id)
            if self._layout.close_overlay():
                self._layout.focus_messages()
        elif tree[node_id].kind is NodeKind.USER:
            await self._tree.edit()
        else:
            await self._end_at(node_id)
            self._transcript.clear_selection()
            self._screen.notify_safely("The next message continues from here; u goes back.")
            self._layout.close_overlay()
            self._layout.focus_prompt()

    async def _end_at(self, node_id: str) -> None:
        before = self._session.head
        self._session.branches.rewind(node_id)
        self._came_from = before
        await self._screen.show_chat()

    async def sibling(self, step: int, node_id: str | None = None) -> None:
        """The node's earlier (-1) or later (1) sibling; without a node, of the last one that has any."""
        tree = self._session.tree
        node_id = node_id or self._selection.node_id or self._last_with_siblings()
        siblings = tree.siblings(node_id) if node_id is not None and node_id in tree else []
        if node_id is None or len(siblings) < 2:
            raise InvalidRequest("The message has no siblings: r or e adds one.")
        at = siblings.index(node_id) + step
        if not 0 <= at < len(siblings):
            return
        if self._view.has_focus:
            self._view.move_to(siblings[at])
        else:
            await self.to(siblings[at])

    def _last_with_siblings(self) -> str | None:
        tree = self._session.tree
        path = tree.path(tree.head)
        return next((one for one in reversed(path) if len(tree.siblings(one)) > 1), None)

    async def branch_point(self, step: int) -> None:
        """Select the next (1) or previous (-1) node that has siblings."""
        if self._view.has_focus:
            if not self._view.next_branch(step):
                raise InvalidRequest(_no_branch_point(step))
            return
        tree = self._session.tree
        path = tree.path(tree.head)
        selected = self._transcript.selected_id
        at = path.index(selected) if selected in path else len(path)
        below, above = path[at + 1 :], path[:at][::-1]
        for one in below if step > 0 else above:
            if len(tree.siblings(one)) > 1:
                await self._transcript.select_node(one)
                return
        raise InvalidRequest(_no_branch_point(step))

    async def branch(self, step: int) -> None:
        """Open the next (1) or previous (-1) branch, in the order of creation, around the end."""
        tree = self._session.tree
        ends = sorted({*tree.leaves(), *tree.branches().values()})  # ids increase
        if len(ends) < 2:
            raise InvalidRequest("There is only one branch.")
        head = tree.head if tree.head in ends else tree.leaf(tree.head)
        at = ends.index(head) if head in ends else 0
        await self._end_at(ends[(at + step) % len(ends)])
        self._view.move_to(self._session.head)

    async def last_branch(self) -> None:
        """Open the branch that was open before."""
        tree, node_id = self._session.tree, self._came_from
        if node_id is None or node_id not in tree or tree[node_id].pruned_at is not None:
            raise InvalidRequest("No other branch was open before.")
        await self._end_at(tree.leaf(node_id) or node_id)
        self._view.move_to(self._session.head)

    async def bookmarks(self) -> None:
        """List nodes with a bookmark or a label, and go to the chosen one."""
        tree, glyphs = self._session.tree, self._glyphs
        marks = TreeMarks(head=tree.head, path=frozenset(tree.path(tree.head)))
        lines = [
            (one, build_tree_line(TreeRow(one), tree[one], marks, glyphs, _CHOICE_CELLS))
            for root in tree.children(None)
            for one in tree.subtree(root)
            if tree[one].rating or tree[one].label
        ]
        if not lines:
            raise InvalidRequest("There are no bookmarks: b sets one, m sets a label.")

        async def chosen(node_id: str | None) -> None:
            if node_id is not None:
                await guarded(self._screen, self.to(node_id))

        self._screen.open_dialog(ChooseNode("Bookmarks and labels", lines), chosen)


def _no_branch_point(step: int) -> str:
    return f"No message {'below' if step > 0 else 'above'} has siblings: r or e adds one."
