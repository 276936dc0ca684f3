"""The dialogs of searching: one over all conversations, and one line for the open branch."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from app.tui.textual_workarounds.one_line import OneLine
from app.tui.view.hits import build_hit
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.query import QueryScreen
from engine.conversations.tree import SearchHit


class SearchScreen(QueryScreen[SearchHit]):
    """Dismisses with the chosen message, or with None.

    The search runs while typing, in the background; the result of a query that was changed meanwhile is
    not shown.

    Args:
        start: begins a search.
        query: the text to begin with.
        wall_clock: seconds since the Unix epoch.
    """

    def __init__(
        self,
        start: Callable[[str], "Future[list[SearchHit]]"],
        *,
        query: str = "",
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(
            "Search all conversations", "enter opens, esc closes", "words of a message", query
        )
        self._start = start
        self._wall_clock = wall_clock

    def on_mount(self) -> None:
        """Say what to do."""
        self.show_note("type what to look for")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.run_worker(self._search(event.value.strip()), exclusive=True)

    async def _search(self, query: str) -> None:
        hits: list[SearchHit] = []
        failure = ""
        if query:
            try:
                hits = await asyncio.wrap_future(self._start(query))
            except asyncio.CancelledError:
                raise
            except Exception as error:
                failure = f"The search failed: {error}."
        if self._dismissed:  # its widgets may be gone
            return
        if failure:
            self.show_note(failure)
            return
        now = self._wall_clock()
        self.show_found(hits, [build_hit(hit, query, now, self.cells) for hit in hits])
        self.show_note(
            "" if hits else "no message contains that" if query else "type what to look for"
        )


class FindScreen(Dialog[str | None]):
    """One line at the bottom; dismisses with the words to find, or with None."""

    BINDINGS: ClassVar = [("escape", "dismiss", "close")]

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        """The input."""
        with Vertical(id="find-box") as box:
            box.border_title = "Find in this branch"
            box.border_subtitle = "enter finds, esc closes"
            yield OneLine(self._words, id="find-input", compact=True, select_on_focus=True)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip() or None)
