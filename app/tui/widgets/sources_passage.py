"""A dialog with a passage in its document: the words that an answer cites are lit."""

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.geometry import Region

from app.runtime.source_views import OpenedPassage
from app.runtime.stored_passages import StoredPassage
from app.tui.glyphs import Glyphs
from app.tui.view.passage import build_passage, build_passage_head
from app.tui.view.spans import Line, Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines


class ShownPassage(NamedTuple):
    """A passage that can be shown.

    Attributes:
        passage: the passage.
        cited: byte offsets of the words to light; None for all of it.
        verdict: what the check found; empty if there is nothing to say.
    """

    passage: StoredPassage
    cited: tuple[int, int] | None
    verdict: str = ""


class PassagePage(VerticalScroll, can_focus=True):
    """The text, laid out again when the width changes."""

    def __init__(self) -> None:
        super().__init__(id="passage-page")
        self.border_subtitle = "n N next, previous   y copy   e editor   esc closes"

    def compose(self) -> ComposeResult:
        """One widget of lines."""
        yield Lines(id="passage-lines")


class PassageScreen(Dialog[None]):
    """The dialog.

    Args:
        passages: in the order of `n`.
        at: index of the one to begin with.
        glyphs: the terminal's glyphs.
        read: begins to read the text around one; it comes with `show_text`.
        copy: copies a text.
        edit: opens a passage's document in the editor.
    """

    BINDINGS: ClassVar = [
        ("escape", "dismiss", "close"),
        ("n", "go(1)", "next"),
        ("N", "go(-1)", "previous"),
        ("j,down", "scroll(1)", "down"),
        ("k,up", "scroll(-1)", "up"),
        ("y", "copy", "copy"),
        ("e", "edit", "editor"),
    ]

    def __init__(
        self,
        passages: Sequence[ShownPassage],
        at: int,
        glyphs: Glyphs,
        *,
        read: Callable[["PassageScreen", ShownPassage], None],
        copy: Callable[[str], None],
        edit: Callable[[StoredPassage], None],
    ) -> None:
        super().__init__()
        self._passages = passages
        self._at = at
        self._glyphs = glyphs
        self._read, self._copy, self._edit = read, copy, edit
        self._opened: OpenedPassage | None = None
        self._drawn_cells = 0

    def compose(self) -> ComposeResult:
        """The page."""
        yield PassagePage()

    def on_mount(self) -> None:
        """Begin with the passage that was asked for."""
        self.query_one(PassagePage).focus()
        self._begin()

    def on_resize(self) -> None:
        """Wrap for the new width."""
        self.call_after_refresh(self._draw)

    @property
    def shown(self) -> ShownPassage:
        """The passage on the screen."""
        return self._passages[self._at]

    def show_text(self, shown: ShownPassage, opened: OpenedPassage) -> None:
        """Show the text, unless another passage was chosen meanwhile."""
        if shown is self.shown and self.is_attached:
            self._opened = opened
            self._drawn_cells = 0
            self._draw()

    def action_go(self, step: int) -> None:
        """The next or previous passage; from the last one, the first."""
        self._at = (self._at + step) % len(self._passages)
        self._begin()

    def action_scroll(self, rows: int) -> None:
        """Scroll the text."""
        self.query_one(PassagePage).scroll_relative(y=rows, animate=False)

    def action_copy(self) -> None:
        """Copy the passage with its place."""
        passage = self.shown.passage
        self._copy(f"{passage.text.strip()}\n\n({passage.file}:{passage.line})")

    def action_edit(self) -> None:
        """Open the document in the editor."""
        self._edit(self.shown.passage)

    def _begin(self) -> None:
        self._opened, self._drawn_cells = None, 0
        self._draw()
        self._read(self, self.shown)

    def _draw(self) -> None:
        page = self.query_one(PassagePage)
        cells = page.scrollable_content_region.width
        if cells <= 1 or cells == self._drawn_cells:
            return
        lines: list[Line] = build_passage_head(
            self.shown.passage, self.shown.verdict, self._position, self._glyphs, cells
        )
        lines.append(())
        if self._opened is None:
            page.query_one(Lines).show_lines(
                [*lines, (Span(f"{self._glyphs.queued} reading", "$faint"),)]
            )
            return
        self._drawn_cells = cells
        rows, lit = build_passage(self._opened, cells)
        page.query_one(Lines).show_lines([*lines, *rows])
        top = len(lines) + lit
        self.call_after_refresh(self._show_row, top)

    def _show_row(self, row: int) -> None:
        page = self.query_one(PassagePage)
        height = page.scrollable_content_region.height
        # With a third of the page above it, what leads to the passage can be read.
        page.scroll_to_region(
            Region(0, max(0, row - height // 3), 1, height), animate=False, force=True
        )

    @property
    def _position(self) -> str:
        count = len(self._passages)
        return f"{self._at + 1} of {count}" if count > 1 else ""
