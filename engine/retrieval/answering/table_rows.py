"""The rows of tables in a text: each is a statement, made of its cells and of the header that it belongs to.

Tables are lines with cells between ` | ` (as our parsers write them), `|` (Markdown) or tabs, and the lines
of CSV files. The header is the first row of neighbouring ones if a rule is below it, or what `header_rows`
takes for it; of rows without one, the heading of their section that has cells. A text that begins inside of a
table has its header in `NumberedPassage.header`. If it begins inside of a row, that names the columns from
there on, behind `LEFT_OUT`: those of other rows are counted from their end.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.retrieval.answering.numbered_passage import NumberedPassage
from engine.retrieval.parsing.delimiter import SAMPLE, delimiter_of, fields_of
from engine.retrieval.parsing.table_header import (
    LEFT_OUT,
    column_names,
    header_rows,
    kind_of,
    spread_groups,
)

_LINE = re.compile(r"[^\n]+")
_BAR = re.compile(r"(?:(?<=\s)|^)\|(?=\s|$)")
_RULE = re.compile(r"[\s|:+=-]*[-=]{2,}[\s|:+=-]*")
_WORD = re.compile(r"[^\W_]+")
MAX_ROWS = 256

_Splitter = Callable[[str], tuple[str, ...]]

_MARKS = frozenset(("yes", "no", "true", "false", "x", "-", "✓", "✗", "✔", "✘", "n/a"))


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table.

    Attributes:
        start: offset of its first character in the text.
        end: offset behind its last character.
        cells: its cells, without the white space around them.
        header: the names of their columns, as many as cells; empty without a header.
    """

    start: int
    end: int
    cells: tuple[str, ...]
    header: tuple[str, ...] = ()

    @property
    def statement(self) -> str:
        """The cells, each behind the name of its column; empty ones are left out."""
        return self.part(range(len(self.cells)))

    def part(self, columns: Iterable[int]) -> str:
        """The statement of some columns."""
        named = ((self.header[at] if self.header else "", self.cells[at]) for at in columns)
        return ", ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)

    @property
    def full_names(self) -> list[str]:
        """The words of cells that consist of capitalised words, two or more: a single one may be any word."""
        names = [_WORD.findall(cell) for cell in self.cells]
        return [
            word
            for words in names
            if len(words) > 1 and all(one[0].isupper() for one in words)
            for word in words
        ]

    @staticmethod
    def is_value(cell: str) -> bool:
        """Whether a cell is a number with at most a unit, or a date."""
        return kind_of(cell) in ("number", "date", "year")

    @staticmethod
    def is_mark(cell: str) -> bool:
        """Whether a cell only says that its column applies or does not, which a sentence does by its verb."""
        return cell.lower() in _MARKS


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a text.

    Attributes:
        rows: their rows, without headers and rules.
        prose: what is between them, half-open spans of the text, in order.
    """

    rows: tuple[TableRow, ...]
    prose: tuple[tuple[int, int], ...]


def tables_of(source: NumberedPassage) -> Tables:
    """The tables in the text of a source; at most `MAX_ROWS` rows."""
    passage = source.passage
    name = passage.file.lower()
    split = _csv_splitter(source) if name.endswith(".csv") else _split
    begun = split(source.header)
    above = begun or next((one for one in map(split, reversed(passage.heading_path)) if one), ())
    found: list[TableRow] = []
    prose: list[tuple[int, int]] = []
    at = 0
    for rows in _runs(source.text, split):
        if len(found) >= MAX_ROWS:
            break
        goes_on = bool(begun) and not source.text[: rows[0].start].strip()
        header, below = ((), _without_rules(rows)) if goes_on else _header(rows)
        if not header and above[:1] == (LEFT_OUT,):
            found += _partly_named(below, above[1:], inside=goes_on)
        else:
            found += [_named(row, header or above) for row in below]
        prose.append((at, rows[0].start))
        at = rows[-1].end
    prose.append((at, len(source.text)))
    return Tables(tuple(found[:MAX_ROWS]), tuple(one for one in prose if one[0] < one[1]))


@dataclass(frozen=True, slots=True)
class _Rule(TableRow):
    """The line between a header and its rows."""


def _runs(text: str, split: _Splitter) -> Iterator[list[TableRow]]:
    """Rows in neighbouring lines."""
    run: list[TableRow] = []
    for line in _LINE.finditer(text):
        cells = split(line[0])
        is_rule = "|" in line[0] and _RULE.fullmatch(line[0]) is not None
        if run and text[run[-1].end : line.start()].count("\n") > 1:
            yield run
            run = []
        if is_rule:
            run.append(_Rule(line.start(), line.end(), ()))
        elif cells:
            run.append(TableRow(line.start(), line.end(), cells))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _without_rules(rows: list[TableRow]) -> list[TableRow]:
    return [one for one in rows if not isinstance(one, _Rule)]


def _header(rows: list[TableRow]) -> tuple[tuple[str, ...], list[TableRow]]:
    """The names of the columns, and the rows below them."""
    below = _without_rules(rows)
    if not below:
        return (), []
    has_rule = len(rows) > 1 and isinstance(rows[1], _Rule)
    cells = [one.cells for one in below[:3]]
    count = 1 if has_rule else header_rows(cells)
    if count < 2:
        return (below[0].cells, below[1:]) if count else ((), below)
    groups, names = cells[:2]
    return tuple(column_names([spread_groups(groups, names), names])), below[2:]


def _partly_named(
    rows: Sequence[TableRow], names: Sequence[str], *, inside: bool
) -> Iterable[TableRow]:
    """Rows with the names of their last columns, of which the names are known.

    Args:
        rows: the rows.
        names: the names of the last columns.
        inside: the first row is only the end of one, which begins with these columns.
    """
    # A wider row tells how many columns are before those. If there is none, nothing does.
    whole = rows[1:] if inside else rows
    before = max((len(row.cells) for row in whole), default=0) - len(names)
    if inside:
        yield from (_named(row, names) for row in rows[:1])
    for row in whole:
        yield _named(row, (*[""] * before, *names)) if before > 0 else row


def _named(row: TableRow, header: Sequence[str]) -> TableRow:
    """The row with the names of its columns; a longer or shorter row has names as far as they go."""
    if not header:
        return row
    names = (*header, *[""] * len(row.cells))[: len(row.cells)]
    return TableRow(row.start, row.end, row.cells, names)


def _split(line: str) -> tuple[str, ...]:
    """The cells of a line; empty if it is no row."""
    # Without a bar at its end the first one stands behind an empty cell.
    if line.lstrip().startswith("|") and line.rstrip().endswith("|") and line.count("|") > 1:
        cells = line.strip().removesuffix("|").removeprefix("|").replace("\\|", "\0").split("|")
        return _stripped(one.replace("\0", "|") for one in cells)
    if _BAR.search(line):
        return _stripped(_BAR.split(line))
    if "\t" in line.strip():
        return _stripped(line.split("\t"))
    return ()


def _csv_splitter(source: NumberedPassage) -> _Splitter:
    delimiter = delimiter_of(source.text.split("\n", SAMPLE)[:SAMPLE], source.header)

    def split(line: str) -> tuple[str, ...]:
        cells = fields_of(line, delimiter)
        return _stripped(cells) if len(cells) > 1 else ()

    return split


def _stripped(cells: Iterable[str]) -> tuple[str, ...]:
    return tuple(" ".join(one.split()) for one in cells)
