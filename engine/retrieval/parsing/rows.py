"""`rows_outline`: the rows of CSV and JSON Lines, each of which may begin a chunk; the header row of CSV."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

from engine.retrieval.parsing.delimiter import SAMPLE, delimiter_of, fields_of
from engine.retrieval.parsing.outline import MAX_ROW_HEADER, Outline, RowHeader
from engine.retrieval.parsing.table_header import column_names, header_rows, spread_groups

_DELIMITER_LINE = re.compile(r"sep=.\r?$", re.MULTILINE)
"""What Excel takes the delimiter from, before the header row."""
_MAX_RECORD = 20_000
"""Characters of such a record."""


def rows_outline(text: str, *, named: bool = False) -> Outline:
    """A break at each line that does not begin inside a quoted field, and where the header row's rows begin.

    Args:
        text: the rows, from the first one on.
        named: whether the first of them may name the columns.
    """
    breaks: list[int] = []
    start, quotes = 0, 0
    for line in text.split("\n"):
        if start and quotes % 2 == 0:
            breaks.append(start)
        quotes += line.count('"') - line.count('\\"')
        start += len(line) + 1
    return Outline(breaks=tuple(breaks), row_headers=_row_headers(text, breaks) if named else ())


def _row_headers(text: str, breaks: Sequence[int]) -> tuple[RowHeader, ...]:
    """The header row, at the record behind it.

    Titles before it have fewer fields than most records, or, as sheets are exported, one that is not empty.
    """
    starts = [0, *breaks[:SAMPLE]]
    ends = [*breaks[:SAMPLE], len(text)] if len(breaks) <= SAMPLE else breaks[: SAMPLE + 1]
    records = [
        (start, text[start : min(end, start + _MAX_RECORD)])
        for start, end in zip(starts, ends, strict=True)
        if text[start:end].strip() and not (start == 0 and _DELIMITER_LINE.match(text))
    ]
    if len(records) < 2:
        return ()
    delimiter = delimiter_of([record for _, record in records])
    rows = [fields_of(record, delimiter) for _, record in records]
    width = Counter(map(len, rows[1:])).most_common(1)[0][0]
    least = min(width, 2)
    first = next(
        (at for at, row in enumerate(rows) if len(row) == width and _filled(row) >= least), 0
    )
    count = header_rows(rows[first : first + 3])
    if not count or first + count >= len(records):
        return ()
    if count == 1:
        header = " ".join(records[first][1].splitlines()).strip()
    else:
        groups, names = rows[first : first + 2]
        header = _record(column_names([spread_groups(groups, names), names]), delimiter)
    return (RowHeader(records[first + count][0], header[:MAX_ROW_HEADER]),)


def _filled(fields: Sequence[str]) -> int:
    return sum(bool(one.strip()) for one in fields)


def _record(fields: Sequence[str], delimiter: str) -> str:
    """Fields as a record of the file."""
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="").writerow(fields)
    return line.getvalue()
