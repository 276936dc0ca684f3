"""Reloading the conversation list, in the background: it waits for queued writes, and searches take long."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from textual.css.query import NoMatches

from app.tui.widgets.conversations import Conversations
from engine.conversations.tree import TreeSummary

if TYPE_CHECKING:
    from app.tui.app import PravahaApp

_GROUP = "list"


class ListActions:
    """Shows the conversations that match the filter as it is now; results for an earlier one are dropped."""

    def __init__(self, app: "PravahaApp") -> None:
        self._app = app
        self.found: list[TreeSummary] = []
        """All conversations that are not archived, newest first, as they were when last read."""

    @property
    def busy(self) -> bool:
        """Whether the list is being read."""
        return any(one.group == _GROUP and not one.is_finished for one in self._app.workers)

    def refresh(self) -> None:
        """Reload the list. The old rows stay until the new ones are found."""
        app = self._app
        try:
            chats = app.screen_stack[0].query_one(Conversations)
            query = chats.filter.strip()
            chats.mark(app.session.tree_id)
        except NoMatches:  # the app ends, and its widgets are removed
            return
        app.workers.cancel_group(app, _GROUP)
        # Cancelled before it begins, a coroutine would never be awaited: pass the function. Its type
        # matches two alternatives of Textual's, between which mypy does not choose.
        find = partial(self._find, chats, query, chats.archived)
        app.run_worker(find, group=_GROUP, exit_on_error=False)  # type: ignore[arg-type]

    async def _find(self, chats: Conversations, query: str, archived: bool) -> None:
        app = self._app
        try:
            found = await asyncio.wrap_future(
                app.session.conversations.start_find(query, archived=archived)
            )
        except asyncio.CancelledError:
            raise
        except Exception as error:
            app.notify_safely(f"The conversations could not be read: {error}.", "warning")
            return
        if not query and not archived:
            self.found = found
        chats.show(found, app.session.tree_id, query)
