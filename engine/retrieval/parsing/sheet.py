"""`Sheet`: the cells of a spreadsheet's sheet, as they are shown; `write_sheet` makes text of them.

A row is a line, its cells in their columns with ` | ` between them, so that an empty cell is still a column.
What a person does not see, who opens the file, is left out: hidden sheets, rows and columns. Rows that a
filter or a collapsed group hides are read, since one click shows them.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.retrieval.parsing.table_header import column_names, header_rows, kind_of
from engine.retrieval.parsing.text_builder import TextBuilder, TextTooLong

_MAX_EMPTY_COLUMNS = 3
"""Neighbouring columns that are shown although the whole sheet has nothing in them."""
_MAX_REPEATED = 1_000_000
"""Cells that get the value of the merged cell which covers them."""
_BAR = re.compile(r"(?<!\S)\||\|(?!\S)")
_SEPARATOR = " | "


class Merge(NamedTuple):
    """Cells that are shown as one; both ends belong to it."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int


class Sheet:
    """A growing sheet. Rows and columns count from 0.

    Attributes:
        name: its name.
        merges: its merged cells.
        hidden_rows: rows that are not shown.
        hidden_columns: columns that are not shown: ranges, both ends included.
        remarks: what stands beside the cells: comments, text boxes.
        uncalculated: formulas without a value.
    """

    def __init__(self, name: str, room: int) -> None:
        """Begin a sheet.

        Args:
            name: its name.
            room: characters that its cells may have.
        """
        self.name = " ".join(name.split())
        self.merges: list[Merge] = []
        self.hidden_rows: set[int] = set()
        self.hidden_columns: list[tuple[int, int]] = []
        self.remarks: list[str] = []
        self.uncalculated = 0
        self._room = room
        self._rows: dict[int, dict[int, str]] = {}

    def put(self, row: int, column: int, text: str) -> None:
        """Set what a cell shows; white space in it becomes one space, line ends too.

        Raises:
            TextTooLong: the sheet has more text than is permitted.
        """
        text = _BAR.sub(r"\\|", " ".join(text.split()))
        if not text:
            return
        self._room -= len(text) + len(_SEPARATOR)
        if self._room < 0:
            raise TextTooLong
        self._rows.setdefault(row, {})[column] = text

    def put_formula(self, row: int, column: int, formula: str) -> None:
        """Set what a cell shows that has a formula without a value."""
        self.uncalculated += 1
        self.put(
            row, column, f"={formula}, not calculated" if formula else "formula, not calculated"
        )

    def repeat_row(self, row: int, times: int) -> None:
        """Show a row as often below itself."""
        cells = self._rows.get(row)
        if not cells:
            return
        cost = sum(len(text) + len(_SEPARATOR) for text in cells.values())
        if cost * times > self._room:
            raise TextTooLong
        self._room -= cost * times
        for at in range(row + 1, row + 1 + times):
            self._rows[at] = dict(cells)

    def rows(self) -> list[tuple[int, dict[int, str]]]:
        """The rows that are shown and not empty, with what merged cells show in each of their rows."""
        self._spread()
        found: list[tuple[int, dict[int, str]]] = []
        for number in sorted(self._rows):
            if number in self.hidden_rows:
                continue
            cells = self._rows[number]
            if self.hidden_columns:
                cells = {at: text for at, text in cells.items() if not self._is_hidden(at)}
            if cells:
                found.append((number, cells))
        return found

    @property
    def left_out(self) -> tuple[int, int]:
        """How many hidden rows and columns have something in them."""
        rows = sum(row in self.hidden_rows for row in self._rows)
        columns = {at for cells in self._rows.values() for at in cells if self._is_hidden(at)}
        return rows, len(columns) if self.hidden_columns else 0

    def _is_hidden(self, column: int) -> bool:
        return any(first <= column <= last for first, last in self.hidden_columns)

    def _spread(self) -> None:
        """Repeat values of merged cells: in each row with something else, and over the columns they group."""
        numbers = sorted(self._rows)
        left = _MAX_REPEATED
        for merge in self.merges:
            value = self._rows.get(merge.first_row, {}).get(merge.first_column)
            if value is None:
                continue
            last = merge.last_column if self._groups(merge) else merge.first_column
            at = bisect_left(numbers, merge.first_row)
            while at < len(numbers) and numbers[at] <= merge.last_row and left > 0:
                cells = self._rows[numbers[at]]
                at, left = at + 1, left - 1
                if any(not merge.first_column <= one <= merge.last_column for one in cells):
                    for column in range(merge.first_column, last + 1):
                        if column not in cells and left > 0:
                            left -= 1
                            self._room -= len(value) + len(_SEPARATOR)
                            cells[column] = value
        if self._room < 0:
            raise TextTooLong

    def _groups(self, merge: Merge) -> bool:
        """Whether a merged cell stands above the names of the columns that it covers."""
        below = self._rows.get(merge.last_row + 1, {})
        width = merge.last_column - merge.first_column + 1
        if width > len(below):
            return False
        covered = [below.get(merge.first_column + at, "") for at in range(width)]
        return all(kind_of(cell) in ("text", "year") for cell in covered)


class _Header(NamedTuple):
    """The names of a table's columns.

    Attributes:
        text: the names; empty if there are none.
        width: how many columns the table has.
        has_values: whether it has more than words.
    """

    text: str
    width: int
    has_values: bool


_NO_HEADER = _Header("", 0, False)


def write_sheet(builder: TextBuilder, sheet: Sheet) -> None:
    """The sheet as a section: its name, its rows, its remarks; nothing of a sheet without any.

    Empty rows between others are one blank line and separate tables. Rows without a header of their own
    belong to the table above if it has numbers and they are not wider, or if they are words as wide as it.
    """
    rows = sheet.rows()
    if not rows and not sheet.remarks:
        return
    builder.paragraph()
    if sheet.name:
        builder.heading(1, sheet.name)
        builder.row_header("")
        builder.add(sheet.name + "\n")
    columns = _columns(rows)
    header = _NO_HEADER
    for first, block in enumerate(_blocks(rows)):
        if first:
            builder.paragraph()
        lines = [_cells(cells, columns) for cells in block]
        title = _title_rows(lines)
        header, count = _header_of(lines[title:], _NO_HEADER if title else header)
        if first and title + count:
            builder.row_header("")
        for at, line in enumerate(lines):
            if at == title + count:
                builder.row_header(header.text)
            builder.mark_break()
            builder.add(_SEPARATOR.join(line) + "\n")
    if sheet.remarks:
        builder.paragraph()
        builder.row_header("")
        for remark in sheet.remarks:
            builder.mark_break()
            builder.add(remark + "\n")


def add_notes(builder: TextBuilder, sheets: Iterable[Sheet], hidden: Sequence[str]) -> None:
    """Name what was left out.

    Args:
        builder: of the document.
        sheets: the sheets that were read.
        hidden: names of hidden sheets.
    """
    if hidden:
        names = ", ".join(hidden)
        what = "The hidden sheet was" if len(hidden) == 1 else f"{len(hidden)} hidden sheets were"
        builder.notes.append(f"{what} not read: {names}.")
    uncalculated = 0
    for sheet in sheets:
        uncalculated += sheet.uncalculated
        for count, what in zip(sheet.left_out, ("row", "column"), strict=True):
            if count:
                many = f"{count} hidden {what}{'s were' if count > 1 else ' was'}"
                builder.notes.append(f"{many} not read in the sheet {sheet.name}.")
    if uncalculated:
        which = "A formula has" if uncalculated == 1 else f"{uncalculated} formulas have"
        builder.notes.append(f"{which} no stored value: the file was never calculated.")


def _columns(rows: Sequence[tuple[int, dict[int, str]]]) -> dict[int, int]:
    """Where each column is shown: wide gaps, which no row has anything in, are left out."""
    shown: dict[int, int] = {}
    before, at = -1, -1
    for column in sorted({column for _, cells in rows for column in cells}):
        gap = column - before - 1
        at += 1 + (gap if gap <= _MAX_EMPTY_COLUMNS else 1)
        shown[column] = at
        before = column
    return shown


def _blocks(rows: Sequence[tuple[int, dict[int, str]]]) -> Iterable[list[dict[int, str]]]:
    """Rows without an empty one between them."""
    block: list[dict[int, str]] = []
    before = None
    for number, cells in rows:
        if before is not None and number > before + 1:
            yield block
            block = []
        block.append(cells)
        before = number
    if block:
        yield block


def _cells(cells: dict[int, str], columns: dict[int, int]) -> list[str]:
    line = [""] * (columns[max(cells)] + 1)
    for column, text in cells.items():
        line[columns[column]] = text
    return line


def _title_rows(lines: Sequence[Sequence[str]]) -> int:
    """How many rows before the table have one cell only."""
    for at, line in enumerate(lines):
        if sum(map(bool, line)) > 1:
            return at
    return 0


def _header_of(table: Sequence[Sequence[str]], above: _Header) -> tuple[_Header, int]:
    """The header of a table's rows, and how many of its first rows it is.

    Args:
        table: its rows.
        above: the header of the table above it.
    """
    width, has_words_only = max(map(len, table)), _has_words_only(table)
    if has_words_only and width == above.width:
        return above, 0
    # Lines of one cell each are no table.
    count = header_rows(table) if sum(map(bool, table[0])) > 1 else 0
    if count:
        names = _SEPARATOR.join(column_names(table[:count]))
        return _Header(names, width, not _has_words_only(table[count:])), count
    return (above if above.has_values and width <= above.width else _NO_HEADER), 0


def _has_words_only(rows: Sequence[Sequence[str]]) -> bool:
    return all(kind_of(cell) in ("text", "empty") for row in rows[:8] for cell in row)
