"""Documents from decoded files and from extracted texts: the parsers' offsets become bytes here.

Offsets outside of the text are left out, and the rest is put in order: a parser process may have been taken
over by the file that it read.
"""

from collections.abc import Iterable

from engine.retrieval.api.parsed_document import Heading, ParsedDocument, TableRows
from engine.retrieval.parsing.byte_offsets import ByteOffsets
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.file_type import FileType
from engine.retrieval.parsing.outline import Outline, RowHeader, TextHeading
from engine.retrieval.parsing.text_encoding import DecodedText


def file_document(decoded: DecodedText, file_type: FileType, outline: Outline) -> ParsedDocument:
    """A document whose text is the decoded file."""
    offsets = ByteOffsets(decoded.text, decoded.encoding, decoded.start)
    length = len(decoded.text)
    return ParsedDocument(
        media_type=file_type.media_type,
        text=decoded.text,
        spans_of=decoded.spans_of,
        encoding=decoded.encoding,
        start=decoded.start,
        headings=_headings(outline.headings, offsets, length),
        breaks=offsets.bytes(_inside(outline.breaks, length)),
        table_rows=_table_rows(outline.row_headers, offsets, length),
        title=outline.title,
        language=file_type.language,
        notes=decoded.notes,
    )


def extracted_document(extracted: Extracted, file_type: FileType) -> ParsedDocument:
    """A document whose text was taken out of a file."""
    offsets = ByteOffsets(extracted.text)
    length = len(extracted.text)
    return ParsedDocument(
        media_type=extracted.media_type or file_type.media_type,
        text=extracted.text,
        spans_of="text",
        headings=_headings(extracted.headings, offsets, length),
        breaks=offsets.bytes(_inside(extracted.breaks, length)),
        pages=offsets.bytes(_inside(extracted.pages, length)),
        table_rows=_table_rows(extracted.row_headers, offsets, length),
        title=extracted.title,
        notes=extracted.notes,
    )


def _headings(
    headings: Iterable[TextHeading], offsets: ByteOffsets, length: int
) -> tuple[Heading, ...]:
    inside = sorted((one for one in headings if 0 <= one.start < length), key=lambda one: one.start)
    starts = offsets.bytes(one.start for one in inside)
    return tuple(
        Heading(max(1, one.level), one.title, start)
        for one, start in zip(inside, starts, strict=True)
    )


def _table_rows(
    headers: Iterable[RowHeader], offsets: ByteOffsets, length: int
) -> tuple[TableRows, ...]:
    inside = sorted((one for one in headers if 0 <= one.start < length), key=lambda one: one.start)
    starts = offsets.bytes(one.start for one in inside)
    return tuple(TableRows(start, one.text) for one, start in zip(inside, starts, strict=True))


def _inside(places: Iterable[int], length: int) -> list[int]:
    return sorted({one for one in places if 0 <= one < length})
