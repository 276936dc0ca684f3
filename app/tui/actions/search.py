"""Searching: over every branch of every conversation, in the open branch, and in earlier prompts."""

from collections.abc import Callable

from app.slash.attachments import split_attached
from app.tui.actions.conversations import ConversationActions
from app.tui.chat_screen import ChatScreen
from app.tui.screen_layout import ScreenLayout
from app.tui.selection import EMPTY
from app.tui.widgets.past_prompts import PastPrompts
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.search import FindScreen, SearchScreen
from app.tui.widgets.transcript import MessageScroll, Transcript
from engine.api.errors import InvalidRequest, PravahaError
from engine.conversations.tree import SearchHit


class SearchActions:
    """The keys of searching."""

    def __init__(
        self,
        screen: ChatScreen,
        layout: ScreenLayout,
        conversations: ConversationActions,
        wall_clock: Callable[[], float],
    ) -> None:
        self._screen = screen
        self._layout = layout
        self._conversations = conversations
        self._wall_clock = wall_clock
        self._words = ""

    def open(self, query: str = "") -> None:
        """Search all conversations; the chosen message is opened on its branch and selected."""
        screen = self._screen

        async def chosen(hit: SearchHit | None) -> None:
            if hit is not None:
                await self._go_to(hit)

        if screen.dialog is None:
            screen.open_dialog(
                SearchScreen(
                    screen.session.conversations.start_find_messages,
                    query=query,
                    wall_clock=self._wall_clock,
                ),
                chosen,
            )

    def find_prompt(self) -> None:
        """Find an earlier prompt and put it into the prompt, in place of the draft.

        Raises:
            InvalidRequest: there is none.
        """
        history = [split_attached(one)[0] for one in self._screen.session.messages.history()]
        if not history:
            raise InvalidRequest("There are no earlier prompts.")

        def chosen(text: str | None) -> None:
            if text is not None:
                prompt = self._screen.main.query_one(Prompt)
                prompt.insert_unsent(text, replace=True)
                prompt.focus()

        self._screen.open_dialog(PastPrompts(history), chosen)

    def find(self) -> None:
        """Ask for words and go to the next message of the open branch that contains them.

        Raises:
            InvalidRequest: the conversation is empty.
        """
        if self._screen.session.head is None:
            raise InvalidRequest(EMPTY)

        async def given(words: str | None) -> None:
            if words is not None:
                self._words = words
                await self.next()

        self._screen.open_dialog(FindScreen(self._words), given)

    async def next(self) -> None:
        """Go to the next message that contains the words; after the last one, to the first."""
        await self._step(1)

    async def previous(self) -> None:
        """Go to the previous message that contains the words; before the first one, to the last."""
        await self._step(-1)

    async def _step(self, direction: int) -> None:
        if not self._words:
            self.find()
            return
        transcript = self._screen.main.query_one(Transcript)
        words = self._words.casefold()
        path = self._screen.session.path()
        found = [at for at, node in enumerate(path) if words in node.text.casefold()]
        if not found:
            self._screen.notify_safely(
                f"No message of this branch contains {self._words}.", "warning"
            )
            return
        selected = transcript.selected
        ids = [node.id for node in path]
        here = ids.index(selected.id) if selected is not None and selected.id in ids else -1
        if direction > 0:
            target = next((at for at in found if at > here), found[0])
        else:
            target = next((at for at in reversed(found) if 0 <= at < here), found[-1])
        await transcript.select_node(ids[target])

    async def _go_to(self, hit: SearchHit) -> None:
        screen = self._screen
        if hit.tree_id != screen.session.tree_id:
            await self._conversations.open(hit.tree_id)
        if all(node.id != hit.node_id for node in screen.session.path()):
            try:
                screen.session.branches.adopt(hit.node_id)
            except PravahaError as error:
                screen.notify_safely(str(error), "warning")
                return
        self._layout.show_messages()
        await screen.show_chat()
        screen.main.query_one(MessageScroll).focus()
        await screen.main.query_one(Transcript).select_node(hit.node_id)
