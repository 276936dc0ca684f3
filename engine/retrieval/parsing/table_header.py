"""`header_rows`: how many of a table's first rows name its columns; `column_names`: the names.

Nothing in a file says so. A row that names columns consists of words; years and dates may be among them where
numbers stand below. A table whose first row has another number has no header.
"""

import re
from collections.abc import Sequence
from typing import Literal

LEFT_OUT = "…"
"""Stands in a header row for the names of columns before those that it has."""
CellKind = Literal["empty", "text", "year", "date", "number"]

_YEAR = re.compile(r"(?:19|20|21)\d\d")
_DATE = re.compile(
    r"\d{4}-\d\d(?:-\d\d)?(?:[ T]\d\d:\d\d.*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}(?: .*)?"
    r"|\d{1,4}/\d{1,2}/\d{1,2}(?: .*)?|\d{1,3}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp][Mm])?"
)
_NUMBER = re.compile(
    r"[-+−(]*\s?(?:[A-Z]{3}\s|[$€£¥₹]\s?)?[-+−(]*[.,]?\d[\d.,'’\s/]*(?:[Ee][+-]?\d+)?"
    r"\s?(?:%|‰|[€$£¥₹]|\s[A-Za-z°µ²³/]{1,4})?\)?|TRUE|FALSE|true|false|#[A-Z0-9/]+[!?]?|=.*"
)
_LONGEST = 60
"""Characters of a value that is compared; a longer one is a text."""


def header_rows(rows: Sequence[Sequence[str]]) -> int:
    """How many rows name the columns of those below: 0, 1, or 2 where the first groups columns.

    Args:
        rows: the first rows of a table, four or more of which are not looked at; each a list of its cells.
    """
    if len(rows) < 2:
        return 0
    kinds = [[kind_of(cell) for cell in row] for row in rows[:3]]
    if len(kinds) > 2 and _groups_columns(rows[0], rows[1]) and "number" not in kinds[0]:
        has_values = any(kind not in ("empty", "text") for kind in kinds[2])
        if has_values and _names_columns(kinds[1], kinds[2]):
            return 2
    return int(_names_columns(kinds[0], kinds[1]))


def column_names(header: Sequence[Sequence[str]]) -> list[str]:
    """The names of the columns below some header rows: of several rows, the names of groups come first.

    Args:
        header: the rows; a cell that spans columns stands in each of them.
    """
    if len(header) == 1:
        return list(header[0])
    width = max(map(len, header), default=0)
    columns = zip(*([*row, *[""] * (width - len(row))] for row in header), strict=True)
    return [" ".join(dict.fromkeys(filter(None, map(str.strip, names)))) for names in columns]


def spread_groups(row: Sequence[str], below: Sequence[str]) -> list[str]:
    """A row that names groups of columns, each name in all columns of its group.

    In files without merged cells the cells behind a name are empty. A group has columns that are named below.
    """
    spread, group = list(row), ""
    for at, name in enumerate(below):
        if at == len(spread):
            spread.append("")
        group = spread[at] or (group if name else "")
        spread[at] = group
    return spread


def kind_of(cell: str) -> CellKind:
    """What a cell shows."""
    cell = cell.strip()
    if not cell:
        return "empty"
    if len(cell) > _LONGEST:
        return "text"
    if _YEAR.fullmatch(cell):
        return "year"
    if _DATE.fullmatch(cell):
        return "date"
    return "number" if _NUMBER.fullmatch(cell) else "text"


def _names_columns(kinds: Sequence[CellKind], below: Sequence[CellKind]) -> bool:
    if "text" not in kinds or "number" in kinds:
        return False
    others = [at for at, kind in enumerate(kinds) if kind in ("year", "date")]
    return not others or any(at < len(below) and below[at] == "number" for at in others)


def _groups_columns(row: Sequence[str], below: Sequence[str]) -> bool:
    """Whether a row has fewer different cells than the row below it has cells."""
    return len({cell for cell in row if cell}) < sum(map(bool, below))
