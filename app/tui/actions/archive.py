"""The archive of conversations: looking at it, taking one back, deleting for good."""

from app.tui.actions.listing import ListActions
from app.tui.chat_screen import ChatScreen
from app.tui.draft_keeper import DraftKeeper
from app.tui.screen_layout import ScreenLayout
from app.tui.widgets.confirm import ConfirmScreen
from app.tui.widgets.conversations import Conversations
from app.tui.widgets.prompt import Prompt
from engine.api.errors import InvalidRequest, PravahaError


class ArchiveActions:
    """The keys and commands of the archive."""

    def __init__(
        self, screen: ChatScreen, layout: ScreenLayout, drafts: DraftKeeper, listing: ListActions
    ) -> None:
        self._screen = screen
        self._layout = layout
        self._drafts = drafts
        self._listing = listing

    def toggle(self) -> None:
        """Show the archived conversations in the list, or the others again."""
        chats = self._screen.main.query_one(Conversations)
        chats.archived = not chats.archived
        self._layout.show_list()
        self._listing.refresh()

    def restore(self) -> None:
        """List the highlighted archived conversation again."""
        chats = self._screen.main.query_one(Conversations)
        tree_id = chats.highlighted
        if not chats.archived or tree_id is None:
            raise InvalidRequest("Only an archived conversation can be brought back: A shows them.")
        self._screen.session.conversations.unarchive(tree_id)
        self._listing.refresh()

    def ask_erase(self, tree_id: str) -> None:
        """Delete an archived conversation for good, after a question."""
        self._ask([tree_id], "Delete this conversation for good?")

    def ask_erase_all(self) -> None:
        """Delete all archived conversations for good, after a question.

        Raises:
            InvalidRequest: there are none.
        """
        trees = [tree.id for tree in self._screen.session.conversations.find(archived=True)]
        if not trees:
            raise InvalidRequest("The archive is empty.")
        self._ask(trees, f"Delete all archived conversations ({len(trees)}) for good?")

    def _ask(self, tree_ids: list[str], question: str) -> None:
        screen = self._screen

        async def answered(yes: bool | None) -> None:
            if not yes:
                return
            self._drafts.leave()
            opened = screen.session.tree_id
            try:
                count = screen.session.conversations.erase(tree_ids)
            except PravahaError as error:
                screen.notify_safely(str(error), "error")
                return
            screen.notify_safely(f"Conversations deleted: {count}.")
            if screen.session.tree_id != opened:  # it was among them
                screen.main.query_one(Prompt).show_draft(self._drafts.enter())
            await screen.show_chat()

        screen.open_dialog(ConfirmScreen(question, "This cannot be undone."), answered)
