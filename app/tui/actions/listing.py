"""Reloading the conversation list; with a filter in the background, because its search may take long."""

import asyncio
from typing import TYPE_CHECKING

from app.tui.widgets.conversations import Conversations

if TYPE_CHECKING:
    from app.tui.app import PravahaApp

_GROUP = "list"


class ListActions:
    """Shows the conversations that match the filter as it is now; results for an earlier one are dropped."""

    def __init__(self, app: "PravahaApp") -> None:
        self._app = app

    def refresh(self) -> None:
        """Reload the list. With a filter the old rows stay until the matching ones are found."""
        app = self._app
        chats = app.query_one(Conversations)
        query = chats.filter.strip()
        app.workers.cancel_group(app, _GROUP)
        if query:
            app.run_worker(
                self._find(chats, query, chats.archived), group=_GROUP, exit_on_error=False
            )
        else:
            chats.show(app.session.trees(archived=chats.archived), app.session.tree_id)

    async def _find(self, chats: Conversations, query: str, archived: bool) -> None:
        app = self._app
        try:
            found = await asyncio.wrap_future(app.session.start_trees(query, archived=archived))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            app.notify_safely(f"The conversations could not be searched: {error}.", "warning")
            return
        chats.show(found, app.session.tree_id, query)
