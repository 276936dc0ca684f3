"""A widget that shows built lines and repaints only when they changed."""

from collections.abc import Sequence

from textual.widgets import Static

from app.tui.textual_workarounds.kept_strips import KeptStrips
from app.tui.view.content import to_content
from app.tui.view.spans import Line


class Lines(KeptStrips, Static):
    """Static rows of spans; `show` compares first, so a tick without news writes nothing."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__("", id=id, classes=classes, markup=False)
        # Clickable spans have their own colours; Textual would give all of them the link's.
        self.auto_links = False
        self._shown: tuple[Line, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """What is shown."""
        return self._shown

    def show(self, lines: Sequence[Line]) -> None:
        """Show these rows; the widget's layout is redone only when their number changes."""
        new = tuple(lines)
        if new == self._shown:
            return
        resized = len(new) != len(self._shown)
        self._shown = new
        self.update(to_content(new), layout=resized)
