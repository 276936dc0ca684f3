"""The conversation list: newest first, filtered by a search over titles and messages."""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from app.tui.glyphs import Glyphs
from app.tui.keys import LIST_KEYS, bindings
from app.tui.textual_workarounds.one_line import OneLine
from app.tui.textual_workarounds.paged_options import PagedOptions
from app.tui.view.content import to_content
from app.tui.view.conversations import build_row
from app.tui.view.spans import Span
from app.tui.widgets.lines import Lines
from engine.conversations.tree import TreeSummary

MAX_ROWS = 500
"""Most conversations that are listed: 10,000 rows would take half a second to draw."""


class ConversationOptions(PagedOptions):
    """The rows of the list, with our key bindings."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(LIST_KEYS)

    class FilterAsked(Message):
        """`/` was pressed."""

    class OpenAsked(Message):
        """Enter was pressed."""

    class DeleteAsked(Message):
        """Delete was pressed on a conversation."""

        def __init__(self, tree_id: str) -> None:
            super().__init__()
            self.tree_id = tree_id

    def action_select_cursor(self) -> None:
        """Open the highlighted conversation."""
        self.post_message(self.OpenAsked())

    def action_filter(self) -> None:
        """Focus the filter."""
        self.post_message(self.FilterAsked())

    def action_delete(self) -> None:
        """Ask to archive the highlighted conversation."""
        option = self.highlighted_option
        if option is not None and option.id is not None:
            self.post_message(self.DeleteAsked(option.id))


class Conversations(Vertical):
    """Filter and list. It shows the conversations that `show` gets and posts messages to the app."""

    class Chosen(Message):
        """A conversation was chosen to be opened."""

        def __init__(self, tree_id: str) -> None:
            super().__init__()
            self.tree_id = tree_id

    class Filtered(Message):
        """The filter changed; the app must call `show` with the matching conversations."""

        def __init__(self, query: str) -> None:
            super().__init__()
            self.query_text = query

    def __init__(
        self,
        glyphs: Glyphs,
        *,
        wall_clock: Callable[[], float] = time.time,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._glyphs = glyphs
        self._wall_clock = wall_clock
        self._rows: tuple[TreeSummary, ...] = ()
        self._current: str | None = None
        self._query = ""
        self._open_asked = False  # while rows for the filter were searched
        self.archived = False
        """Whether the archived conversations are listed."""
        self._shown: object = None

    def compose(self) -> ComposeResult:
        """Filter above the list, and a note for an empty list."""
        yield OneLine(placeholder="filter", id="chat-filter", compact=True)
        yield Lines(id="chat-none")
        yield ConversationOptions(id="chat-list", compact=True, markup=False)

    @property
    def filter(self) -> str:
        """The text of the filter."""
        return self.query_one("#chat-filter", Input).value

    @property
    def highlighted(self) -> str | None:
        """The id of the highlighted conversation; None if the list is empty."""
        option = self.options.highlighted_option
        return None if option is None else option.id

    @property
    def narrowed(self) -> bool:
        """Whether the list has the focus and shows less than all, or the archive: Esc undoes that."""
        return self.has_focus_within and (bool(self.filter) or self.archived)

    def widen(self) -> None:
        """Clear the filter, else leave the archive."""
        if self.filter:
            self.query_one("#chat-filter", Input).value = ""
        else:
            self.archived = False
            self.post_message(self.Filtered(""))

    @property
    def options(self) -> ConversationOptions:
        """The list."""
        return self.query_one("#chat-list", ConversationOptions)

    def show(self, trees: Sequence[TreeSummary], current: str | None, query: str = "") -> None:
        """Show the conversations that match a query; the highlighted one remains highlighted."""
        self._rows, self._current, self._query = tuple(trees), current, query
        self._draw()
        if self._open_asked and not self._searching:
            self._open_asked = False
            self.options.action_select()

    def mark(self, current: str | None) -> None:
        """Mark another conversation as the open one."""
        if current != self._current:
            self._current = current
            self._draw()

    @property
    def _searching(self) -> bool:
        """Whether the rows are those of an earlier filter."""
        return self.filter.strip() != self._query

    def on_resize(self, event: events.Resize) -> None:
        """Redraw, because titles are cut to the width."""
        self._draw()

    def _draw(self) -> None:
        cells = self.options.scrollable_content_region.width
        if cells <= 0:
            return
        now = self._wall_clock()
        rows = [
            (
                tree.id,
                to_content(
                    build_row(
                        tree,
                        now,
                        self._glyphs,
                        cells,
                        current=tree.id == self._current,
                        query=self._query,
                    )
                ),
            )
            for tree in self._rows[:MAX_ROWS]
        ]
        more = len(self._rows) - len(rows)
        key = (
            self.archived,
            self._query,
            more,
            *((tree_id, content.plain) for tree_id, content in rows),
        )
        if key == self._shown:
            return
        self._shown = key
        options = self.options
        before = options.highlighted_option
        kept = before.id if before else self._current
        shown = [Option(content, id=tree_id) for tree_id, content in rows]
        if more:
            older = to_content([(Span(f"  {more} older: / filters", "$faint"),)])
            shown.append(Option(older, disabled=True))
        options.set_options(shown)
        ids = [tree_id for tree_id, _ in rows]
        if ids:
            options.highlighted = ids.index(kept) if kept in ids else 0
        none = self.query_one("#chat-none", Lines)
        none.display = not rows or self.archived
        text = (
            "archive: u brings back, esc leaves"
            if rows
            else "nothing matches"
            if self._query
            else "the archive is empty"
            if self.archived
            else "no conversations yet"
        )
        none.show_lines([(Span(text, "$faint"),)])

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option.id is not None:
            self.query_one("#chat-filter", Input).value = ""
            self.post_message(self.Chosen(event.option.id))

    @on(ConversationOptions.OpenAsked)
    def _open(self) -> None:
        """Open the highlighted row; while the filter searches, the one highlighted after it."""
        if self._searching:
            self._open_asked = True
        else:
            self.options.action_select()

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        event.stop()
        self._open_asked = False
        self.post_message(self.Filtered(event.value))

    @on(Input.Submitted)
    def _to_list(self, event: Input.Submitted) -> None:
        event.stop()
        self.options.focus()

    @on(ConversationOptions.FilterAsked)
    def _to_filter(self) -> None:
        self.query_one("#chat-filter", Input).focus()
