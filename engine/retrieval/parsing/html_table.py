"""`TableGrid`: the rows and columns of an HTML table, and their text.

A row of short cells is one line, `Aarhus | 4410`. Empty cells keep their columns, except columns without any
text. A cell that spans rows is repeated in each of them, so that every row can be read alone; one that spans
columns is followed by empty ones. The cells of tables that only arrange a page (layout tables) are blocks.
"""

from typing import NamedTuple

from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.html_flow import Flow
from engine.retrieval.parsing.outline import MAX_ROW_HEADER
from engine.retrieval.parsing.table_header import column_names, header_rows
from engine.retrieval.parsing.text_flow import Block, joined

_MAX_COLUMNS = 256
"""Columns at which spans are followed."""
_MAX_REPEATED = 200
"""Characters of a cell that is repeated in the rows that it spans."""
_SECTIONS = ("thead", "tbody", "tfoot")


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        content: its text.
        header: whether it names a row or column.
        columns: how many it spans.
        rows: how many it spans; 0 for all to the end of its section.
        lines: whether its line breaks matter: it contains preformatted lines.
    """

    content: Extracted
    header: bool = False
    columns: int = 1
    rows: int = 1
    lines: bool = False


class _Span:
    """A cell that continues in the next rows of its column."""

    def __init__(self, text: str, rows: int) -> None:
        self.text, self.rows = text, rows


_Row = dict[int, tuple[str, Cell | None]]
"""The text at each column, and the cell that begins there."""


class TableGrid:
    """Collects cells, then writes them.

    Attributes:
        caption: of the table.
        nested: whether a cell contains a table.
    """

    def __init__(self, *, presentation: bool) -> None:
        """Begin; `presentation` says that the page declares a layout table."""
        self.caption: Extracted | None = None
        self.nested = False
        self._presentation = presentation
        self._sections: dict[str, list[list[Cell]]] = {name: [] for name in _SECTIONS}
        self._row: list[Cell] | None = None

    def begin_row(self, section: str) -> None:
        """Begin a row of `thead`, `tbody` or `tfoot`."""
        self._row = []
        self._sections[section].append(self._row)

    def add(self, cell: Cell) -> None:
        """Add a cell to the row."""
        if self._row is None:
            self.begin_row("tbody")
        if self._row is not None:
            self._row.append(cell)

    def write(self, flow: Flow) -> None:
        """Write the caption, then the rows: first those of the head, at last those of the foot."""
        flow.paragraph()
        if self.caption is not None and self.caption.text.strip():
            flow.text(_one_line(self.caption.text))
            flow.line()
        rows = [row for name in _SECTIONS for row in self._placed(self._sections[name])]
        used = {at for row in rows for at, (text, _) in row.items() if text}
        columns = sorted(used)
        headers = any(
            cell.header for name in _SECTIONS for row in self._sections[name] for cell in row
        )
        data = not self._presentation and (
            headers or self.caption is not None or bool(self._sections["thead"]) or not self.nested
        )
        limits = _HEADED if headers and data else _PLAIN if data else _LAYOUT
        header, first = "", 0
        if data and len(columns) > 1 and (first := self._header_rows(rows, columns, headers)):
            names = [_names(row, columns) for row in rows[:first]]
            # A title above all columns names none of them.
            names = [one for one in names if first == 1 or len(set(one)) > 1]
            if names and all(_fits(row, len(columns), limits) for row in rows[:first]):
                header = " | ".join(column_names(names)).rstrip()[:MAX_ROW_HEADER]
        is_named = False
        for number, row in enumerate(rows):
            if header and number >= first and not is_named:
                flow.line()
                flow.builder.row_header(header)
                is_named = True
            if _fits(row, len(columns), limits):
                # A data table keeps its empty cells at the end of a row, too.
                last = max(at for at, (text, _) in row.items() if text or limits is not _LAYOUT)
                flow.line()
                if len(columns) > 1:
                    flow.builder.mark_break()
                texts = (row.get(at, _EMPTY)[0] for at in columns if at <= last)
                flow.text(" | ".join(texts).rstrip(), preformatted=True)
                flow.line()
            else:
                for _, cell in sorted(row.items()):
                    if cell[1] is not None:
                        flow.append(cell[1].content)
                        is_named = False  # a table in the cell has ended this one
        if is_named:
            flow.builder.row_header(None)
        flow.paragraph()

    def _header_rows(self, rows: list[_Row], columns: list[int], headers: bool) -> int:
        """How many of the first rows name the columns.

        What the page declares counts: rows of `thead`, else rows of header cells only. Of a table without
        header cells the texts tell.
        """
        declared = len(self._sections["thead"])
        if not declared and headers:
            while declared < len(rows) and _is_header(rows[declared]):
                declared += 1
        if declared or headers:
            return declared if declared < len(rows) else 0
        return header_rows([_names(row, columns) for row in rows[:3]])

    @staticmethod
    def _placed(rows: list[list[Cell]]) -> list[_Row]:
        """The text and cell at each column of each row of a section."""
        placed: list[_Row] = []
        spans: dict[int, _Span] = {}
        for index, row in enumerate(rows):
            line: _Row = {}
            for at, span in list(spans.items()):
                line[at] = (span.text, None)
                span.rows -= 1
                if not span.rows:
                    del spans[at]
            at = 0
            for cell in row:
                while at in line:
                    at += 1
                text = _cell_text(cell.content)
                line[at] = (text, cell)
                if cell.rows != 1 and at < _MAX_COLUMNS:
                    below = min(cell.rows or len(rows), len(rows) - index) - 1
                    if below > 0:
                        repeated = text if len(text) <= _MAX_REPEATED else ""
                        spans[at] = _Span(repeated, below)
                        for more in range(at + 1, min(at + cell.columns, _MAX_COLUMNS)):
                            spans[more] = _Span("", below)
                at += min(cell.columns, max(1, _MAX_COLUMNS - at))
            placed.append(line)
        return placed


class _Limits(NamedTuple):
    """Up to which length, and how many lines, all cells of a row are one line."""

    characters: int
    lines: int


_HEADED = _Limits(4_000, 60)
_PLAIN = _Limits(500, 8)
_LAYOUT = _Limits(200, 1)
_LONGEST_SECTION = 500
"""Characters of a cell with headings or code in a row of a table that names its rows or columns."""
_EMPTY: tuple[str, Cell | None] = ("", None)


def _is_header(row: _Row) -> bool:
    """Whether all cells with a text are header cells, and there is one."""
    cells = [cell for text, cell in row.values() if cell is not None and text]
    return bool(cells) and all(cell.header for cell in cells)


def _names(row: _Row, columns: list[int]) -> list[str]:
    """The texts of a row in its columns, each in all columns that its cell spans."""
    names, text, end = list[str](), "", 0
    for at in columns:
        own, cell = row.get(at, _EMPTY)
        if cell is not None or own:
            text, end = own, at + (cell.columns if cell is not None else 1)
        names.append(text if at < end else "")
    return names


def _fits(row: _Row, columns: int, limits: _Limits) -> bool:
    """Whether a row is one line."""
    cells = [cell for text, cell in row.values() if cell is not None and text]
    most_lines = 1 if columns < 2 or (limits is _LAYOUT and len(cells) < 2) else limits.lines
    return bool(cells) and all(
        len(cell.content.text) <= limits.characters
        and sum(1 for line in cell.content.text.split("\n") if line) <= most_lines
        and _is_short(cell, limits)
        for cell in cells
    )


def _is_short(cell: Cell, limits: _Limits) -> bool:
    """Whether a cell may lose its lines of code, and its headings may be words of a row."""
    if limits is _HEADED:
        return len(cell.content.text) <= _LONGEST_SECTION or not (
            cell.content.headings or cell.lines
        )
    if cell.lines or not cell.content.headings:
        return not cell.lines
    return limits is _PLAIN and _one_line(cell.content.text) == cell.content.headings[0].title


def _cell_text(content: Extracted) -> str:
    """A cell as one line; the rows of a table in it are written as elsewhere (`text_flow.joined`)."""
    if " | " not in content.text:
        return _one_line(content.text)
    blocks: list[Block] = []
    rows, at = set(content.breaks), 0
    for line in content.text.splitlines(keepends=True):
        text = _one_line(line).replace(" \\| ", " | ")
        # A row ends without the space behind its last bar.
        cells = tuple(map(_one_line, f"{line.rstrip()} ".split(" | "))) if at in rows else ()
        if text:
            blocks.append(Block(text, cells=cells))
        at += len(line)
    return joined(blocks).replace(" | ", r" \| ")


def _one_line(text: str) -> str:
    return " ".join(text.split())
