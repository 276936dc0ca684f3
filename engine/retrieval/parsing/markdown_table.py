"""`table_outline`: the rows of a Markdown table, and the header row to which they belong."""

import re
from collections.abc import Iterator

from engine.retrieval.parsing.outline import MAX_ROW_HEADER, RowHeader

TABLE_START = r"(?P<names>(?=[^\n|]*\|)[^\n]+)\n(?P<rule>(?=[^\n|]*\|)(?=[^\n-]*-)[ \t|:\-]+\r?)"
"""The header row and the line below it; `is_table` tells whether they are that."""
_RULE_CELL = re.compile(r"[ \t]*:?-+:?[ \t]*")
_ROW = re.compile(r"[^\n]+")
_NO_ROW = re.compile(r"[ \t]*(?:\r?$|>|#{1,6}[ \t]|`{3}|~{3})")
"""The beginning of a line that ends a table."""


def is_table(names: str, rule: str) -> bool:
    """Whether a line names columns: the line below it has as many cells, each of them dashes."""
    dashes = _cells(rule)
    return len(_cells(names)) == len(dashes) and all(map(_RULE_CELL.fullmatch, dashes))


def rows_at(text: str, start: int) -> Iterator[int]:
    """Where the rows begin from an offset on, and last where they end."""
    while (row := _ROW.match(text, start)) is not None and not _NO_ROW.match(row[0]):
        yield start
        start = min(row.end() + 1, len(text))
    yield start


def table_outline(text: str, start: int, names: str) -> tuple[list[int], list[RowHeader]]:
    """The offsets of the rows from an offset on, and what names their columns and where that ends."""
    *rows, end = rows_at(text, start)
    if not rows:
        return [], []
    return rows, [RowHeader(start, names.strip()[:MAX_ROW_HEADER]), RowHeader(end, None)]


def _cells(line: str) -> list[str]:
    line = line.strip().replace("\\|", "")
    return line.removeprefix("|").removesuffix("|").split("|")
