"""The tokens of an answer as rows of text, for the token cursor and the heat map.

A `TokenUnit` is what the token cursor steps over: tokens that begin and end at the boundary of a grapheme,
because one grapheme may consist of several tokens. Control characters and line breaks are visible marks.
Cost: O(characters), 40 ms for 10,000 tokens; `layout_units` is computed once for each width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len

from app.text.safe_text import safe_text
from app.tui.glyphs import Glyphs
from app.tui.view.graphemes import graphemes, joins


@dataclass(frozen=True, slots=True)
class TokenUnit:
    """Tokens [start, end) of an answer.

    Attributes:
        parts: the visible text; a new row begins after each part but the last.
    """

    start: int
    end: int
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The visible text on one line."""
        return "".join(self.parts)


class Piece(NamedTuple):
    """Text of one unit on one row.

    Attributes:
        unit: index of the unit.
        cells: width.
    """

    unit: int
    text: str
    cells: int


@dataclass(frozen=True, slots=True)
class TokenLayout:
    """Units wrapped to a width.

    Attributes:
        rows: pieces of each row, left to right.
        first_row: the row on which each unit begins, [units].
    """

    rows: tuple[tuple[Piece, ...], ...]
    first_row: tuple[int, ...]

    def column(self, unit: int) -> int:
        """The cell at which a unit begins."""
        column = 0
        for piece in self.rows[self.first_row[unit]]:
            if piece.unit == unit:
                break
            column += piece.cells
        return column

    def unit_at(self, column: int, row: int) -> int | None:
        """The unit at a cell, or None."""
        if not 0 <= row < len(self.rows):
            return None
        for piece in self.rows[row]:
            column -= piece.cells
            if column < 0:
                return piece.unit
        return None


def build_units(texts: Sequence[str], glyphs: Glyphs) -> tuple[TokenUnit, ...]:
    """The units of an answer.

    Args:
        texts: the text that each token adds. A token without text belongs to a character that a later
            token completes; at the answer's end it is a control token, and a unit of its own.
        glyphs: the marks.
    """
    units: list[TokenUnit] = []
    start, text = 0, ""
    complete = 0  # one past the last token that added text
    for at, added in enumerate(texts):
        if not added:
            continue
        if text and not joins(text, added):
            units.append(TokenUnit(start, complete, _visible(text, glyphs)))
            start, text = complete, ""
        text += added
        complete = at + 1
    if text:
        units.append(TokenUnit(start, complete, _visible(text, glyphs)))
    units += [TokenUnit(at, at + 1, (glyphs.answer_end,)) for at in range(complete, len(texts))]
    return tuple(units)


def layout_units(units: Sequence[TokenUnit], width: int) -> TokenLayout:
    """Units wrapped at words to `width` cells; words that are longer, at graphemes."""
    wrapper = _Wrapper(max(width, 1))
    word: list[Piece] = []
    for index, unit in enumerate(units):
        for number, part in enumerate(unit.parts):
            if number:
                wrapper.add_word(word)
                wrapper.begin_row()
                word = []
            if part.startswith(" "):
                wrapper.add_word(word)
                word = []
            if part:
                word.append(Piece(index, part, cell_len(part)))
    wrapper.add_word(word)
    rows = wrapper.finish()
    first_row = [-1] * len(units)
    for number, row in enumerate(rows):
        for piece in row:
            if first_row[piece.unit] < 0:
                first_row[piece.unit] = number
    return TokenLayout(rows, tuple(first_row))


def next_word(units: Sequence[TokenUnit], at: int, step: int) -> int:
    """The first unit of the next (`step` 1) or of this or the previous word (-1)."""
    at += step
    while 0 < at < len(units) - 1 and not _begins_word(units, at):
        at += step
    return min(max(at, 0), len(units) - 1)


def _begins_word(units: Sequence[TokenUnit], at: int) -> bool:
    return units[at].text.startswith(" ") or len(units[at - 1].parts) > 1


class _Wrapper:
    """Collects rows of at most `width` cells."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: list[tuple[Piece, ...]] = []
        self._row: list[Piece] = []
        self._used = 0

    def begin_row(self) -> None:
        self._rows.append(tuple(self._row))
        self._row, self._used = [], 0

    def add_word(self, word: Sequence[Piece]) -> None:
        """Append a word; on a new row if it fits only there."""
        cells = sum(piece.cells for piece in word)
        if self._used and self._used + cells > self._width >= cells:
            self.begin_row()
        for piece in word:
            if self._used + piece.cells <= self._width:
                self._row.append(piece)
                self._used += piece.cells
            else:
                self._add_split(piece)

    def _add_split(self, piece: Piece) -> None:
        text, cells = "", 0
        for grapheme in graphemes(piece.text):
            if self._used + cells and self._used + cells + grapheme.cells > self._width:
                if text:
                    self._row.append(Piece(piece.unit, text, cells))
                self.begin_row()
                text, cells = "", 0
            text += grapheme.text
            cells += grapheme.cells
        if text:
            self._row.append(Piece(piece.unit, text, cells))
            self._used += cells

    def finish(self) -> tuple[tuple[Piece, ...], ...]:
        """All rows; at least one."""
        if self._row or not self._rows:
            self.begin_row()
        return tuple(self._rows)


def _visible(text: str, glyphs: Glyphs) -> tuple[str, ...]:
    """The text with marks in place of what cannot be seen, divided after line breaks."""
    if text.isascii() and text.isprintable():
        return (text,)
    *ended, last = text.translate(_control_marks(glyphs)).split("\n")
    parts = [safe_text(part) for part in (*(line + glyphs.newline for line in ended), last)]
    return tuple(part if cell_len(part) else _codes(part) for part in parts)


def _control_marks(glyphs: Glyphs) -> dict[int, str]:
    if glyphs.name not in _CONTROL_MARKS:
        images = {code: chr(0x2400 + code) for code in range(0x20) if code != 0x0A}
        others = {code: _codes(chr(code)) for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF)}
        _CONTROL_MARKS[glyphs.name] = images | others | {0x09: glyphs.tab}
    return _CONTROL_MARKS[glyphs.name]


_CONTROL_MARKS: dict[str, dict[int, str]] = {}


def _codes(text: str) -> str:
    """The characters' numbers: text without width would be invisible."""
    return "".join(f"⟨U+{ord(character):04X}⟩" for character in text)
