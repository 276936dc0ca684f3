"""`delimiter_of`: what separates the fields of a CSV file; `fields_of` splits its records.

Nothing in a file says it. The rule, wherever it is asked: the delimiter by which most records have the same
number of fields; of several, the one with most fields. One in quotes separates nothing.
"""

import csv
from collections import Counter
from collections.abc import Sequence

DELIMITERS = ",;\t|"
SAMPLE = 25
"""Records from which the delimiter is told."""
_MAX_RECORD = 20_000
"""Characters of a record that are looked at."""


def delimiter_of(records: Sequence[str], header: str = "") -> str:
    """The delimiter of some records, of which the first `SAMPLE` are looked at; empty if they have none.

    Args:
        records: with or without line ends; they may be lines of longer records if the header is given.
        header: the header row, if it is known: what does not separate names of columns is no delimiter.
    """
    sample = [one[:_MAX_RECORD] for one in (header, *records[:SAMPLE]) if one.strip()]
    best, found = (0, 0), ""
    for delimiter in DELIMITERS:
        if not sample or (header and len(fields_of(header, delimiter)) < 2):
            continue
        widths = Counter(len(fields_of(one, delimiter)) for one in sample)
        width, alike = max(widths.items(), key=lambda one: (one[1], one[0]))
        if (width > 1 or header) and (alike, width) > best:
            best, found = (alike, width), delimiter
    return found


def fields_of(record: str, delimiter: str) -> list[str]:
    """The fields of a record, whose end may be missing; the whole record if there is no delimiter."""
    line = record.strip("\r\n").replace("\r", " ").replace("\n", " ")
    if not delimiter:
        return [line.strip()]
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a field is longer than the module reads
        return line.split(delimiter)
