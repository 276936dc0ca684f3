"""Reloading the conversation list, in the background: it waits for queued writes, and searches take long."""

import asyncio
from functools import partial

from textual.css.query import NoMatches
from textual.worker import Worker

from app.tui.chat_screen import ChatScreen
from app.tui.widgets.conversations import Conversations
from engine.conversations.tree import TreeSummary


class ListActions:
    """Shows the conversations that match the filter as it is now; results for an earlier one are dropped."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._reading: Worker[None] | None = None
        self.found: list[TreeSummary] = []
        """All conversations that are not archived, newest first, as they were when last read."""

    @property
    def busy(self) -> bool:
        """Whether the list is being read."""
        return self._reading is not None and not self._reading.is_finished

    def refresh(self) -> None:
        """Reload the list. The old rows stay until the new ones are found."""
        screen = self._screen
        try:
            chats = screen.main.query_one(Conversations)
            query = chats.filter.strip()
            chats.mark(screen.session.tree_id)
        except NoMatches:  # the app ends, and its widgets are removed
            return
        # Cancelled before it begins, a coroutine would never be awaited: pass the function.
        find = partial(self._find, chats, query, chats.archived)
        self._reading = screen.run_worker(
            find,
            group="list",
            exit_on_error=False,
            exclusive=True,
        )

    async def _find(self, chats: Conversations, query: str, archived: bool) -> None:
        screen = self._screen
        try:
            found = await asyncio.wrap_future(
                screen.session.conversations.start_find(query, archived=archived)
            )
        except asyncio.CancelledError:
            raise
        except Exception as error:
            screen.notify_safely(f"The conversations could not be read: {error}.", "warning")
            return
        if not query and not archived:
            self.found = found
        chats.show(found, screen.session.tree_id, query)
