"""The archive of conversations: looking at it, taking one back, deleting for good."""

from typing import TYPE_CHECKING

from app.tui.widgets.confirm import ConfirmScreen
from app.tui.widgets.conversations import Conversations
from engine.api.errors import InvalidRequest, PravahaError

if TYPE_CHECKING:
    from app.tui.app import PravahaApp


class ArchiveActions:
    """The keys and commands of the archive."""

    def __init__(self, app: "PravahaApp") -> None:
        self._app = app

    def toggle(self) -> None:
        """Show the archived conversations in the list, or the others again."""
        chats = self._app.query_one(Conversations)
        chats.archived = not chats.archived
        self._app.show_list()
        self._app.refresh_list()

    def restore(self) -> None:
        """List the highlighted archived conversation again."""
        chats = self._app.query_one(Conversations)
        tree_id = chats.highlighted
        if not chats.archived or tree_id is None:
            raise InvalidRequest("Only an archived conversation can be brought back: A shows them.")
        self._app.session.conversations.unarchive(tree_id)
        self._app.refresh_list()

    def ask_erase(self, tree_id: str) -> None:
        """Delete an archived conversation for good, after a question."""
        self._ask([tree_id], "Delete this conversation for good?")

    def ask_erase_all(self) -> None:
        """Delete all archived conversations for good, after a question.

        Raises:
            InvalidRequest: there are none.
        """
        trees = [tree.id for tree in self._app.session.conversations.find(archived=True)]
        if not trees:
            raise InvalidRequest("The archive is empty.")
        self._ask(trees, f"Delete all archived conversations ({len(trees)}) for good?")

    def _ask(self, tree_ids: list[str], question: str) -> None:
        app = self._app

        async def answered(yes: bool | None) -> None:
            if not yes:
                return
            try:
                count = app.session.conversations.erase(tree_ids)
            except PravahaError as error:
                app.notify_safely(str(error), "error")
                return
            app.notify_safely(f"Conversations deleted: {count}.")
            await app.show_chat()

        app.open_dialog(ConfirmScreen(question, "This cannot be undone."), answered)
