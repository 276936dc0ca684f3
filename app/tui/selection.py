"""`Selection`: the node that the keys of navigate mode act on."""

from app.tui.chat_screen import ChatScreen
from app.tui.widgets.branches import BranchPane
from app.tui.widgets.cards import CardStrip
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest

EMPTY = "The conversation is empty: send a message first."


class Selection:
    """The node under the tree's cursor, or the selected card, if it has the focus; else the message."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen

    @property
    def node_id(self) -> str | None:
        """The selected node; None if there is none."""
        main = self._screen.main
        tree, cards = main.query_one(BranchPane).tree_view, main.query_one(CardStrip)
        if tree.has_focus:
            return tree.cursor
        return cards.selected if cards.has_focus else main.query_one(Transcript).selected_id

    @property
    def in_tree(self) -> bool:
        """Whether the branch tree has the focus."""
        return self._screen.main.query_one(BranchPane).tree_view.has_focus

    def target(self) -> str:
        """The selected node, else the end of the open path.

        Raises:
            InvalidRequest: the conversation is empty.
        """
        node_id = self.node_id or self._screen.session.head
        if node_id is None:
            raise InvalidRequest(EMPTY)
        return node_id
