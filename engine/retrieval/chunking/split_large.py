"""`split_large`: the chunks of a file that is read in segments.

The last chunk of a segment, which ends where the segment happens to end, is cut again: the next segment
begins with it. Every other chunk is as `split` cuts it, but that nothing behind its segment is looked at.
"""

from collections.abc import Iterator
from dataclasses import replace

from engine.retrieval.api.chunk import Chunk
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import Heading, TableRows
from engine.retrieval.chunking.line_numbers import LineNumbers
from engine.retrieval.chunking.split import split
from engine.retrieval.chunking.token_counter import TokenCounter
from engine.retrieval.parsing.large_text import LargeText


def split_large(
    text: LargeText, counter: TokenCounter, *, max_tokens: int = 256, overlap_tokens: int = 32
) -> Iterator[Chunk]:
    """The chunks of a file, in order, while it is read; `text.content_hash` must have been called.

    Args:
        text: the file.
        counter: counts tokens of the embedding model.
        max_tokens: as in `split`.
        overlap_tokens: as in `split`.

    Raises:
        Unreadable: the file has changed, or has only white space; what came before is to be dropped.
        OSError: it cannot be read.
    """
    start, lines_before = text.start, 0
    headings: tuple[Heading, ...] = ()
    rows: TableRows | None = None
    found = False
    while start < text.size:
        segment = text.segment(start, headings, rows)
        document = segment.document
        chunks = split(document, counter, max_tokens=max_tokens, overlap_tokens=overlap_tokens)
        again = chunks.pop() if len(chunks) > 1 and not segment.last else None
        for one in chunks:
            found = True
            yield replace(one, line=one.line + lines_before)
        if again is None:
            start = segment.end
            lines_before += LineNumbers(document.text).line(len(document.text)) - 1
        else:
            start = again.start
            lines_before += again.line - 1
        headings = _open_headings(document.headings, start)
        rows = next((one for one in reversed(document.table_rows) if one.start <= start), rows)
    text.check_unchanged()
    if not found:
        raise Unreadable("It is empty.")


def _open_headings(headings: tuple[Heading, ...], place: int) -> tuple[Heading, ...]:
    """The sections around a place, outermost first; one that begins there is found again behind it."""
    around: list[Heading] = []
    for one in headings:
        if one.start >= place:
            break
        while around and around[-1].level >= one.level:
            around.pop()
        around.append(one)
    return tuple(around)
