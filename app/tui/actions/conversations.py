"""Opening, starting and archiving conversations. The archive's own keys are in `archive.py`."""

from app.tui.actions.archive import ArchiveActions
from app.tui.actions.listing import ListActions
from app.tui.chat_screen import ChatScreen
from app.tui.draft_keeper import DraftKeeper
from app.tui.screen_layout import ScreenLayout
from app.tui.widgets.confirm import ConfirmScreen
from app.tui.widgets.conversations import Conversations
from app.tui.widgets.prompt import Prompt
from engine.api.errors import PravahaError


class ConversationActions:
    """Changes which conversation is open; the draft in the prompt stays with its conversation."""

    def __init__(
        self,
        screen: ChatScreen,
        layout: ScreenLayout,
        drafts: DraftKeeper,
        *,
        listing: ListActions,
        archive: ArchiveActions,
    ) -> None:
        self._screen = screen
        self._layout = layout
        self._drafts = drafts
        self._listing = listing
        self._archive = archive

    @property
    def _prompt(self) -> Prompt:
        return self._screen.main.query_one(Prompt)

    async def open(self, tree_id: str) -> None:
        """Open another conversation."""
        self._drafts.leave()
        try:
            self._screen.session.conversations.open(tree_id)
        except PravahaError as error:
            self._screen.notify_safely(str(error), "error")
            return
        self._prompt.show_draft(self._drafts.enter())
        self._layout.show_messages()
        self._layout.hide_left_column()
        await self._screen.show_chat()
        self._prompt.focus()

    async def new(self) -> None:
        """Open an empty conversation; a running answer continues in the background."""
        self._drafts.leave()
        self._screen.session.conversations.open_new()
        self._prompt.show_draft(self._drafts.enter())
        self._layout.show_messages()
        await self._screen.show_chat()
        self._prompt.focus()

    def ask_delete(self, tree_id: str) -> None:
        """Archive a conversation after confirmation; it is kept in the database."""

        async def answered(yes: bool | None) -> None:
            if yes:
                self._drafts.leave()
                self._screen.session.conversations.archive(tree_id)
                self._prompt.show_draft(self._drafts.enter())
                await self._screen.show_chat()

        self._screen.open_dialog(ConfirmScreen("Archive this conversation?"), answered)

    def ask_delete_listed(self, tree_id: str) -> None:
        """Archive a conversation of the list, or delete an archived one for good; asks."""
        archived = self._screen.main.query_one(Conversations).archived
        (self._archive.ask_erase if archived else self.ask_delete)(tree_id)

    async def follow_others(self) -> None:
        """Show what another process has added to the open conversation, and to the list."""
        session = self._screen.session
        if session.following.follow_path():
            self._screen.wake()
        if session.following.follow_branches():
            await self._screen.show_chat()
        if session.following.list_changed():
            self._listing.refresh()
