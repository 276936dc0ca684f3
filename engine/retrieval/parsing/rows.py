"""`rows_outline`: the rows of CSV and JSON Lines, each of which may begin a chunk."""

from engine.retrieval.parsing.outline import Outline


def rows_outline(text: str) -> Outline:
    """A break at each line that does not begin inside a quoted field."""
    breaks: list[int] = []
    start, quotes = 0, 0
    for line in text.split("\n"):
        if start and quotes % 2 == 0:
            breaks.append(start)
        quotes += line.count('"') - line.count('\\"')
        start += len(line) + 1
    return Outline(breaks=tuple(breaks))
