"""The dialogs of searching: one over all conversations, and one line for the open branch."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from app.tui.textual_workarounds.paged_options import PagedOptions
from app.tui.view.content import to_content
from app.tui.view.hits import build_hit
from app.tui.view.spans import Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines
from engine.conversations.tree import SearchHit


class SearchScreen(Dialog[SearchHit | None]):
    """Dismisses with the chosen message, or with None.

    The search runs while typing, in the background; the result of a query that was changed meanwhile is
    not shown.

    Args:
        start: begins a search.
        query: the text to begin with.
        wall_clock: seconds since the Unix epoch.
    """

    BINDINGS: ClassVar = [
        ("escape", "dismiss", "close"),
        ("down", "step(1)", "next"),
        ("up", "step(-1)", "previous"),
        ("pagedown", "step(5)", "further"),
        ("pageup", "step(-5)", "back"),
    ]

    def __init__(
        self,
        start: Callable[[str], "Future[list[SearchHit]]"],
        *,
        query: str = "",
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._start = start
        self._query = query
        self._wall_clock = wall_clock
        self._hits: Sequence[SearchHit] = ()

    def compose(self) -> ComposeResult:
        """The query above the hits."""
        with Vertical(id="search-box") as box:
            box.border_title = "Search all conversations"
            box.border_subtitle = "enter opens, esc closes"
            yield Input(
                self._query, placeholder="words of a message", id="search-input", compact=True
            )
            yield Lines(id="search-note")
            hits = PagedOptions(id="search-hits", compact=True, markup=False)
            hits.can_focus = False  # keys stay with the input; up and down move over the hits
            yield hits

    def on_mount(self) -> None:
        """Begin to type."""
        self._note("type what to look for")
        self.query_one(Input).focus()

    def action_step(self, rows: int) -> None:
        """Move over the hits."""
        options = self.query_one(OptionList)
        if options.option_count:
            at = (options.highlighted or 0) + rows
            options.highlighted = min(max(at, 0), options.option_count - 1)

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
            self._note(failure)
        else:
            self._show(query, hits)

    def _show(self, query: str, hits: Sequence[SearchHit]) -> None:
        self._hits = hits
        options = self.query_one(OptionList)
        cells = max(20, options.scrollable_content_region.width - 2)
        now = self._wall_clock()
        options.set_options(
            [Option(to_content(build_hit(hit, query, now, cells)), id=hit.node_id) for hit in hits]
        )
        if hits:
            options.highlighted = 0
        self._note("" if hits else "no message contains that" if query else "type what to look for")

    def _note(self, text: str) -> None:
        note = self.query_one("#search-note", Lines)
        note.display = bool(text)
        note.show_lines([(Span(text, "$faint"),)])

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        at = self.query_one(OptionList).highlighted
        if at is not None and at < len(self._hits):
            self.dismiss(self._hits[at])

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._hits[event.option_index])


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
            yield Input(self._words, id="find-input", compact=True, select_on_focus=True)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip() or None)
