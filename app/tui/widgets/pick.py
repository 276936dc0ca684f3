"""A dialog with a list to pick one item from."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.tui.textual_workarounds.paged_options import PagedOptions
from app.tui.view.content import to_content
from app.tui.view.spans import Line
from app.tui.widgets.dialog import Dialog


class PickScreen(Dialog[str | None]):
    """Dismisses with the id of an item, or with None.

    Args:
        title: title of the box.
        items: (id, rows) of each item.
    """

    BINDINGS: ClassVar = [
        ("escape", "dismiss", "cancel"),
        ("j", "down", "next"),
        ("k", "up", "previous"),
    ]

    def __init__(self, title: str, items: Sequence[tuple[str, Sequence[Line]]]) -> None:
        super().__init__()
        self._title = title
        self._items = items

    def compose(self) -> ComposeResult:
        """The list."""
        with Vertical(id="pick-box") as box:
            box.border_title = self._title
            box.border_subtitle = "enter picks, esc cancels"
            options = [Option(to_content(rows), id=item) for item, rows in self._items]
            yield PagedOptions(*options, id="pick-list", compact=True, markup=False)

    def on_mount(self) -> None:
        """Begin at the first item."""
        options = self.query_one(OptionList)
        options.highlighted = 0
        options.focus()

    def action_down(self) -> None:
        """The next item."""
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        """The previous item."""
        self.query_one(OptionList).action_cursor_up()

    @on(OptionList.OptionSelected)
    def _picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option.id)
