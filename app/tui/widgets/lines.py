"""A widget that shows lines of spans and redraws only if they changed."""

from collections.abc import Sequence

from textual.widgets import Static

from app.tui.textual_workarounds.cached_strips import CachedStrips
from app.tui.view.content import to_content
from app.tui.view.spans import Line, width


class Lines(CachedStrips, Static):
    """Static rows of spans; `show_lines` writes nothing if the rows are equal."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__("", id=id, classes=classes, markup=False)
        # Clickable spans have their own colours, which Textual would replace by the link colour.
        self.auto_links = False
        self._shown: tuple[Line, ...] = ()
        self._laid_out_again = False

    @property
    def lines(self) -> tuple[Line, ...]:
        """The current rows."""
        return self._shown

    def show_lines(self, lines: Sequence[Line]) -> None:
        """Show these rows; only a change of their number, or a row that wraps, causes a layout."""
        new = tuple(lines)
        if new == self._shown:
            self._lay_out_if_cut_off()
            return
        self._laid_out_again = False
        resized = len(new) != len(self._shown) or self._wraps(new) or self._wraps(self._shown)
        self._shown = new
        self.update(to_content(new), layout=resized)

    def _lay_out_if_cut_off(self) -> None:
        # Lines that come before the first layout is complete are sometimes left out of it.
        height = self.styles.height
        if self._laid_out_again or height is None or not height.is_auto:
            return
        if 0 < self.content_size.height < len(self._shown):
            self._laid_out_again = True
            self.refresh(layout=True)

    def _wraps(self, lines: tuple[Line, ...]) -> bool:
        """Whether a row takes more than one row of the screen."""
        height = self.styles.height
        if height is None or not height.is_auto:
            return False
        return any(width(line) > self.content_size.width for line in lines)
