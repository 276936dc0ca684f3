"""`TableBlock`: a table in an answer. Its columns share the width, and cells break their lines.

Textual 8.2.8 gives a column with a long URL the room of its neighbours, does not align columns, and cuts
cells off. Where the columns have no room side by side, the rows are shown one after the other, each cell
under the name of its column.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.content import Content
from textual.css.styles import RulesMap
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets._markdown import MarkdownTable, MarkdownTD, MarkdownTH, MarkdownTR
from textual.widgets.markdown import MarkdownBlock

from app.tui.view.column_widths import column_widths

_HEAD, _RULE = "bold $primary", "$foreground 20%"
_BETWEEN = " │ "


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of a table.

    Attributes:
        head: of its columns.
        rows: each has a cell for each column.
        aligns: `left`, `right` or `center`, for each column.
    """

    head: Sequence[Content]
    rows: Sequence[Sequence[Content]]
    aligns: Sequence[str]


def build_table(table: Table, width: int) -> Content:
    """The lines of a table of at most `width` cells."""
    columns = list(zip(table.head, *table.rows, strict=True))
    lines = [[line for cell in column for line in cell.plain.split("\n")] for column in columns]
    widths = column_widths(
        [max(map(_cells, column)) for column in lines],
        [max(_cells(word) for line in column for word in line.split() or [""]) for column in lines],
        width - len(_BETWEEN) * (len(columns) - 1),
    )
    rows = _records(table, width) if widths is None else _side_by_side(table, widths)
    return Content("\n").join(rows)


def _cells(text: str) -> int:
    return Content(text).cell_length


def _side_by_side(table: Table, widths: Sequence[int]) -> Iterator[Content]:
    """The head, a rule and the rows; rules between the rows, too, if some have several lines."""
    rule = Content("─┼─".join("─" * one for one in widths)).stylize(_RULE)
    rows = [list(_row(row, widths, table.aligns)) for row in table.rows]
    ruled = any(len(row) > 1 for row in rows)
    yield from _row([cell.stylize_before(_HEAD) for cell in table.head], widths, table.aligns)
    yield rule
    for at, row in enumerate(rows):
        if at and ruled:
            yield rule
        yield from row


def _row(row: Sequence[Content], widths: Sequence[int], aligns: Sequence[str]) -> Iterator[Content]:
    """The lines of one row."""
    cells = [cell.wrap(width) for cell, width in zip(row, widths, strict=True)]
    between = Content(_BETWEEN).stylize(_RULE)
    for at in range(max(map(len, cells))):
        yield between.join(
            _aligned(lines[at] if at < len(lines) else Content(""), width, align)
            for lines, width, align in zip(cells, widths, aligns, strict=True)
        )


def _aligned(line: Content, width: int, align: str) -> Content:
    blanks = max(0, width - line.cell_length)
    left = {"right": blanks, "center": blanks // 2}.get(align, 0)
    return line.pad(left, blanks - left)


def _records(table: Table, width: int) -> Iterator[Content]:
    """The rows one after the other, each cell with the name of its column."""
    rule = Content("─" * width).stylize(_RULE)
    if not table.rows:
        for name in table.head:
            yield from name.stylize_before(_HEAD).wrap(width)
    for at, row in enumerate(table.rows):
        if at:
            yield rule
        for name, cell in zip(table.head, row, strict=True):
            if name.plain:
                cell = Content.assemble(name.stylize_before(_HEAD), ": ", cell)
            if cell.plain:
                yield from cell.wrap(width)


class TableRows(Visual):
    """A table, for whatever width it has."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._built_for = 0
        self.content = Content("")

    def _build(self, width: int) -> Content:
        if width and self._built_for != width:
            self._built_for, self.content = width, build_table(self._table, width)
        return self.content

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """The container's."""
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        """Number of lines."""
        return self._build(width).plain.count("\n") + 1

    def render_strips(
        self, width: int, height: int | None, style: Style, options: RenderOptions
    ) -> list[Strip]:
        """The lines."""
        return self._build(width).render_strips(width, height, style, options)


class TableBlock(MarkdownTable):
    """A table of an answer."""

    DEFAULT_CSS = """
    TableBlock { height: auto; }
    """

    def compose(self) -> ComposeResult:
        """No widgets: the table is drawn as text."""
        self._show(self)
        yield from ()

    async def _update_from_block(self, block: MarkdownBlock) -> None:
        """Show the table of a block that was parsed later."""
        if isinstance(block, TableBlock):
            self._copy_context(block)
            self._show(block)
        else:
            await MarkdownBlock._update_from_block(self, block)

    def _show(self, block: "TableBlock") -> None:
        self.update(TableRows(_table_of(block)))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected part of the table as it is drawn."""
        rows = self.visual
        return (
            (selection.extract(rows.content.plain), "\n") if isinstance(rows, TableRows) else None
        )


def _table_of(block: MarkdownBlock) -> Table:
    head: list[Content] = []
    aligns: list[str] = []
    rows: list[list[Content]] = []
    for part in _parts(block):
        if isinstance(part, MarkdownTH):
            head.append(_trimmed(part._content))
            style = str(part._token.attrs.get("style", ""))
            aligns.append(style.removeprefix("text-align:") or "left")
        elif isinstance(part, MarkdownTR):
            rows.append([])
        elif isinstance(part, MarkdownTD):
            rows[-1].append(_trimmed(part._content))
    return Table(head, [row for row in rows if row], aligns)


def _parts(block: MarkdownBlock) -> Iterator[MarkdownBlock]:
    """The blocks in a block, each before those in it."""
    for one in block._blocks:
        yield one
        yield from _parts(one)


def _trimmed(cell: Content) -> Content:
    """A cell without line breaks at its ends."""
    blanks = len(cell.plain) - len(cell.plain.lstrip())
    return cell[blanks:].rstrip()
