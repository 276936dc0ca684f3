"""Wraps text into rows of a number of cells: between words, and through words that are too long.

Rows never end inside a grapheme. Input is sanitised by `app.text.safe_text`.
"""

import re

from rich.cells import cell_len, chop_cells

TAB = "    "
_PIECE = re.compile(r"^ +|[^ ]+ *")


def wrap_cells(text: str, cells: int) -> list[str]:
    """The rows of a text; an empty text has one empty row."""
    rows: list[str] = []
    for line in text.replace("\t", TAB).split("\n"):
        rows += _wrap_line(line, max(1, cells))
    return rows


def last_rows(text: str, cells: int, rows: int) -> list[str]:
    """The last `rows` rows of a text. Only the part that they can come from is wrapped.

    Costs O(rows × cells), so that a long answer can be shown on every frame.
    """
    if rows <= 0:
        return []
    # Every row but the first of a part has more than half of its cells filled, unless a line ends.
    reach = 4 * rows * cells
    part = text[-reach:]
    if len(part) < len(text):  # begin at a word, so that a row is the same on the next frame
        part = part[max(0, part.find(" ") + 1) :]
    return wrap_cells(part.rstrip("\n"), cells)[-rows:]


def _wrap_line(line: str, cells: int) -> list[str]:
    rows: list[str] = []
    row, used = "", 0
    for word in _pieces(line):
        size = cell_len(word)
        if used + cell_len(word.rstrip()) <= cells:
            row, used = row + word, used + size
            continue
        if row.strip():
            rows.append(row.rstrip())
            row, used = "", 0
        *full, row = chop_cells(word, cells) if size > cells else [word]
        rows += full
        used = cell_len(row)
    rows.append(row.rstrip())
    return rows


def _pieces(line: str) -> list[str]:
    """The words of a line, each with the spaces after it; the indentation is a piece of its own."""
    return _PIECE.findall(line)
