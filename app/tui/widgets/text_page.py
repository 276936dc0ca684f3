"""A dialog that shows lines of text; it scrolls, and closes with escape."""

import textwrap
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from app.tui.view.spans import Line, Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines


def build_text_page(texts: Sequence[str], cells: int) -> list[Line]:
    """The texts, wrapped; a text that begins with a space belongs to the one above it."""
    lines: list[Line] = []
    for text in texts:
        detail = text.startswith(" ")
        indent, style = ("  ", "$foreground") if detail else ("", "$muted")
        rows = textwrap.wrap(text.strip(), max(12, cells - 2)) or [""]
        lines += [(Span(f"{indent}{row}", style),) for row in rows]
    return lines


class TextPage(VerticalScroll, can_focus=True):
    """The lines, laid out again when the width changes."""

    def __init__(self, title: str, texts: Sequence[str]) -> None:
        super().__init__(id="help-page")  # looks like the page of the help
        self._texts = texts
        self.border_title = title
        self.border_subtitle = "esc closes"

    def compose(self) -> ComposeResult:
        """One widget of lines."""
        yield Lines(id="help-lines")

    def on_resize(self) -> None:
        """Wrap for the new width."""
        lines = build_text_page(self._texts, self.scrollable_content_region.width)
        self.query_one(Lines).show_lines(lines)


class TextPageScreen(Dialog[None]):
    """The dialog."""

    BINDINGS: ClassVar = [("escape", "dismiss", "close")]

    def __init__(self, title: str, texts: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._texts = texts

    def compose(self) -> ComposeResult:
        """The page."""
        yield TextPage(self._title, self._texts)
