"""Searching: over every branch of every conversation, in the open branch, and in earlier prompts."""

from typing import TYPE_CHECKING

from app.tui.actions.target import EMPTY
from app.tui.widgets.past_prompts import PastPrompts
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.search import FindScreen, SearchScreen
from app.tui.widgets.transcript import MessageScroll, Transcript
from engine.api.errors import InvalidRequest, PravahaError
from engine.conversations.tree import SearchHit

if TYPE_CHECKING:
    from app.tui.app import PravahaApp


class SearchActions:
    """The keys of searching."""

    def __init__(self, app: "PravahaApp") -> None:
        self._app = app
        self._words = ""

    def open(self, query: str = "") -> None:
        """Search all conversations; the chosen message is opened on its branch and selected."""
        app = self._app

        async def chosen(hit: SearchHit | None) -> None:
            if hit is not None:
                await self._go_to(hit)

        if len(app.screen_stack) == 1:
            app.open_dialog(
                SearchScreen(
                    app.session.conversations.start_find_messages,
                    query=query,
                    wall_clock=app.wall_clock,
                ),
                chosen,
            )

    def find_prompt(self) -> None:
        """Find an earlier prompt and put it into the prompt, in place of the draft.

        Raises:
            InvalidRequest: there is none.
        """
        history = self._app.session.messages.history()
        if not history:
            raise InvalidRequest("There are no earlier prompts.")

        def chosen(text: str | None) -> None:
            if text is not None:
                prompt = self._app.query_one(Prompt)
                prompt.insert_unsent(text, replace=True)
                prompt.focus()

        self._app.open_dialog(PastPrompts(history), chosen)

    def find(self) -> None:
        """Ask for words and go to the next message of the open branch that contains them.

        Raises:
            InvalidRequest: the conversation is empty.
        """
        if self._app.session.head is None:
            raise InvalidRequest(EMPTY)

        async def given(words: str | None) -> None:
            if words is not None:
                self._words = words
                await self.next()

        self._app.open_dialog(FindScreen(self._words), given)

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
        transcript = self._app.query_one(Transcript)
        words = self._words.casefold()
        path = self._app.session.path()
        found = [at for at, node in enumerate(path) if words in node.text.casefold()]
        if not found:
            self._app.notify_safely(f"No message of this branch contains {self._words}.", "warning")
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
        app = self._app
        if hit.tree_id != app.session.tree_id:
            await app.open_chat(hit.tree_id)
        if all(node.id != hit.node_id for node in app.session.path()):
            try:
                app.session.branches.adopt(hit.node_id)
            except PravahaError as error:
                app.notify_safely(str(error), "warning")
                return
        app.pane, app.maximised = "chat", False
        await app.show_chat()
        app.query_one(MessageScroll).focus()
        await app.query_one(Transcript).select_node(hit.node_id)
