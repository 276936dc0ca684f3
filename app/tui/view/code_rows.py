"""Cuts a line of code into rows of a number of cells.

Code is cut anywhere, but never inside a grapheme: unlike prose it has no blanks that may be dropped.
"""

from collections.abc import Iterator
from typing import NamedTuple

from app.tui.view.graphemes import Grapheme, graphemes

TAB_CELLS = 4
"""Distance of the tab stops, which count from the begin of the line."""


class CodePiece(NamedTuple):
    """A part of a row.

    Attributes:
        start, end: half-open range of the line's characters.
        blanks: width of a tab in cells, which is a piece of its own; 0 for text.
    """

    start: int
    end: int
    blanks: int = 0


def code_rows(line: str, cells: int) -> list[list[CodePiece]]:
    """The rows of one line; an empty line has one row."""
    cells = max(1, cells)
    if len(line) <= cells and line.isascii() and "\t" not in line:
        return [[CodePiece(0, len(line))]]
    rows: list[list[CodePiece]] = [[]]
    at = column = used = 0
    for text, size in _characters(line):
        blanks = TAB_CELLS - column % TAB_CELLS if text == "\t" else 0
        size = blanks or size
        if used + size > cells and used:
            rows.append([])
            used = 0
        row = rows[-1]
        if blanks:
            row.append(CodePiece(at, at + 1, min(blanks, cells)))
        elif row and not row[-1].blanks:
            row[-1] = row[-1]._replace(end=at + len(text))
        else:
            row.append(CodePiece(at, at + len(text)))
        at, column, used = at + len(text), column + size, used + size
    return rows


def _characters(line: str) -> Iterator[Grapheme]:
    """The graphemes of a line; tabs are no part of one."""
    for number, part in enumerate(line.split("\t")):
        if number:
            yield Grapheme("\t", 0)
        yield from graphemes(part)
