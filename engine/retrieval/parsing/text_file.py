"""`parse_text_file`: documents of formats that need decoding only: plain text, Markdown, source code."""

from engine.retrieval.api.parsed_document import Heading, ParsedDocument
from engine.retrieval.parsing.byte_offsets import ByteOffsets
from engine.retrieval.parsing.outline import Outline
from engine.retrieval.parsing.text_encoding import DecodedText


def text_document(
    decoded: DecodedText, media_type: str, outline: Outline, language: str | None = None
) -> ParsedDocument:
    """A document whose text is the decoded file."""
    offsets = ByteOffsets(decoded.text, decoded.encoding, decoded.start)
    starts = offsets.bytes(one.start for one in outline.headings)
    return ParsedDocument(
        media_type=media_type,
        text=decoded.text,
        spans_of=decoded.spans_of,
        encoding=decoded.encoding,
        start=decoded.start,
        headings=tuple(
            Heading(one.level, one.title, start)
            for one, start in zip(outline.headings, starts, strict=True)
        ),
        breaks=offsets.bytes(outline.breaks),
        title=outline.title,
        language=language,
        notes=decoded.notes,
    )
