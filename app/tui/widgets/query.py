"""`QueryScreen`: base of the dialogs in which one types a query above what it finds."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, OptionList

from app.tui.textual_workarounds.one_line import OneLine
from app.tui.textual_workarounds.paged_options import PagedOptions
from app.tui.view.content import to_content
from app.tui.view.spans import Line, Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines

T = TypeVar("T")


class QueryScreen(Dialog[T | None]):
    """Dismisses with the item that is taken, or with None. A subclass handles `Input.Changed`.

    Args:
        title: title of the box.
        keys: what enter and escape do.
        placeholder: what to type.
        query: the text to begin with.
    """

    BINDINGS: ClassVar = [
        ("escape", "dismiss", "close"),
        ("down", "step(1)", "next"),
        ("up", "step(-1)", "previous"),
        ("pagedown", "step(5)", "further"),
        ("pageup", "step(-5)", "back"),
    ]

    def __init__(self, title: str, keys: str, placeholder: str, query: str = "") -> None:
        super().__init__()
        self._title = title
        self._keys = keys
        self._placeholder = placeholder
        self._query = query
        self._items: Sequence[T] = ()

    def compose(self) -> ComposeResult:
        """The query above what it finds."""
        with Vertical(id="query-box") as box:
            box.border_title = self._title
            box.border_subtitle = self._keys
            yield OneLine(
                self._query, placeholder=self._placeholder, id="query-input", compact=True
            )
            yield Lines(id="query-note")
            found = PagedOptions(id="query-found", compact=True, markup=False)
            found.can_focus = False  # keys stay with the input; up and down move over the items
            yield found

    def on_mount(self) -> None:
        """Begin to type."""
        self.query_one(Input).focus()

    @property
    def cells(self) -> int:
        """Columns of a row of an item."""
        return max(20, self.query_one(OptionList).scrollable_content_region.width - 2)

    def show_found(self, items: Sequence[T], rows: Iterable[Sequence[Line]]) -> None:
        """Show the items that can be taken, the first one highlighted, each in its rows."""
        self._items = items
        options = self.query_one(OptionList)
        options.set_options([to_content(lines) for lines in rows])
        if items:
            options.highlighted = 0

    def show_note(self, text: str) -> None:
        """Show a sentence above the items; an empty one hides it."""
        note = self.query_one("#query-note", Lines)
        note.display = bool(text)
        note.show_lines([(Span(text, "$faint"),)])

    def action_step(self, rows: int) -> None:
        """Move over the items."""
        options = self.query_one(OptionList)
        if options.option_count:
            at = (options.highlighted or 0) + rows
            options.highlighted = min(max(at, 0), options.option_count - 1)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        at = self.query_one(OptionList).highlighted
        if at is not None and at < len(self._items):
            self.dismiss(self._items[at])

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._items[event.option_index])
