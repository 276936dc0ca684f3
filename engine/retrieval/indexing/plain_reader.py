"""Reads plain text in windows of tokens."""

from pathlib import Path

from tokenizers import Tokenizer

from engine.retrieval.api.chunk import Chunk
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument

_WINDOW = 200


def parse(path: Path) -> ParsedDocument:
    """Parse a UTF-8 file."""
    data = path.read_bytes()
    if b"\0" in data:
        raise Unreadable("It is not a text file.")
    try:
        return ParsedDocument("text/plain", data.decode("utf-8"), "file")
    except UnicodeDecodeError as error:
        raise Unreadable("It is not UTF-8.") from error


def split(document: ParsedDocument, tokenizer: Tokenizer) -> list[Chunk]:
    """Cut after each `_WINDOW` tokens."""
    text = document.text
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    chunks, cursor, line = [], 0, 1
    starts = [offsets[at][0] for at in range(0, len(offsets), _WINDOW)]
    for number, begin in enumerate(starts):
        stop = starts[number + 1] if number + 1 < len(starts) else len(text)
        piece = text[begin:stop]
        start = cursor = cursor + len(text[(starts[number - 1] if number else 0) : begin].encode())
        tokens = min(_WINDOW, len(offsets) - number * _WINDOW)
        line = 1 + text.count("\n", 0, begin)
        chunks.append(
            Chunk(
                piece,
                start,
                start + len(piece.encode()),
                tokens,
                (),
                0,
                len(text.encode()),
                None,
                line,
            )
        )
    return chunks
