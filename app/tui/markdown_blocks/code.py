"""`CodeText`: code whose long lines go on in the next row, with a mark; `CodeBlock`: code in an answer.

Textual cuts the lines of a code block off at the width of the screen, without a mark. A selection with the
mouse takes the code as it was written: rows that were cut are one line, and tabs are tabs.
"""

from contextlib import suppress

from rich.segment import Segment
from textual.app import ComposeResult
from textual.content import Content
from textual.css.query import NoMatches
from textual.css.styles import RulesMap
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets import Static
from textual.widgets._markdown import MarkdownFence

from app.tui.view.code_rows import CodePiece, code_rows

CONTINUED = "↳ "
"""Before the rows in which a line goes on; before all others there is as much room."""


class CodeRows(Visual):
    """Highlighted code, cut into rows."""

    def __init__(self, code: Content) -> None:
        self.code = code
        self._lines = code.split("\n", allow_blank=True)
        self._cut_to = 0  # the width for which the rows are known
        self._rows: list[list[list[CodePiece]]] = []  # of each line

    def _cut(self, width: int) -> list[list[list[CodePiece]]]:
        if self._cut_to != width:
            self._cut_to = width
            self._rows = [code_rows(line.plain, width - len(CONTINUED)) for line in self._lines]
        return self._rows

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """The container's: lines are cut to it."""
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        """Number of rows."""
        return sum(map(len, self._cut(width)))

    def render_strips(
        self, width: int, height: int | None, style: Style, options: RenderOptions
    ) -> list[Strip]:
        """The rows. Each segment names its place in the code, as selections need it."""
        if not width:
            return []
        blank = Segment(" " * len(CONTINUED), style.rich_style)
        continued = Segment(CONTINUED, (style + options.get_style("$faint")).rich_style)
        strips: list[Strip] = []
        for y, (line, rows) in enumerate(zip(self._lines, self._cut(width), strict=True)):
            line = _selected(line, y, options)
            for at, row in enumerate(rows):
                segments = [continued if at else blank]
                for piece in row:
                    segments += _segments(line, piece, y, style, options)
                strips.append(Strip(segments))
        return strips[:height]


def _selected(line: Content, y: int, options: RenderOptions) -> Content:
    """The line with the selected part of it marked."""
    span = None if options.selection is None else options.selection.get_span(y)
    if span is None or options.selection_style is None:
        return line
    start, end = span
    return line.stylize(options.selection_style, start, len(line) if end < 0 else end)


def _segments(
    line: Content, piece: CodePiece, y: int, style: Style, options: RenderOptions
) -> list[Segment]:
    segments: list[Segment] = []
    x = piece.start
    part = line[piece.start : piece.end]
    for text, text_style in part.render(style, end="", parse_style=options.get_style):
        shown = " " * piece.blanks or text
        segments.append(Segment(shown, (style + text_style).rich_style_with_offset(x, y)))
        x += len(text)
    return segments


class CodeText(Static):
    """Shows code. Its left padding is that of the mark."""

    def __init__(
        self,
        code: Content,
        *,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(CodeRows(code), expand=True, id=id, classes=classes, markup=False)

    def show_code(self, code: Content) -> None:
        """Show other code."""
        self.update(CodeRows(code))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected part of the code, as it was written."""
        rows = self.visual
        return (selection.extract(rows.code.plain), "\n") if isinstance(rows, CodeRows) else None


class CodeBlock(MarkdownFence):
    """A code block of an answer, fenced or indented."""

    DEFAULT_CSS = """
    CodeBlock { overflow: hidden hidden; }
    CodeBlock > CodeText { padding: 1 2 1 0; }
    """

    def compose(self) -> ComposeResult:
        """The code."""
        yield CodeText(self._highlighted_code)

    def set_content(self, content: Content) -> None:
        """Show other code."""
        self._content = content
        with suppress(NoMatches):
            self.query_one(CodeText).show_code(content)
