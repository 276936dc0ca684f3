"""A dialog that lists nodes of the conversation and returns the chosen one."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.tui.view.content import to_content
from app.tui.view.spans import Line


class ChooseNode(ModalScreen[str | None]):
    """Dismisses with the id of a node, or with None after Esc."""

    BINDINGS: ClassVar = [("escape", "cancel", "back")]

    def __init__(self, title: str, lines: Sequence[tuple[str, Line]]) -> None:
        super().__init__()
        self._title = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        """One row for each node."""
        options = (Option(to_content([line]), id=node_id) for node_id, line in self._lines)
        with Vertical(id="choose-box") as box:
            box.border_title = self._title
            box.border_subtitle = "enter goes there, esc leaves"
            yield OptionList(*options, id="choose-list", compact=True)

    def on_mount(self) -> None:
        """Highlight the first row."""
        self.query_one(OptionList).highlighted = 0

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option.id)

    def action_cancel(self) -> None:
        """Close without a choice."""
        self.dismiss(None)
