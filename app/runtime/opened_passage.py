"""`open_passage`: a passage with the text around it, from the file that it was taken from.

The file belongs to the user and may have been changed or removed since it was indexed. The stored text of
the passage is what the model has read, so it is shown in any case.
"""

from pathlib import Path
from typing import NamedTuple

from app.runtime.source_views import OpenedPassage, Piece
from app.runtime.stored_passages import StoredPassage

AROUND_BYTES = 6_000
"""Most bytes of the document that are shown before the passage, and as many after it."""
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "cp1252", "latin-1")


class Section(NamedTuple):
    """A part of the extracted text of a document.

    Attributes:
        data: its UTF-8.
        start: the offset of its first byte.
    """

    data: bytes
    start: int


def open_passage(
    passage: StoredPassage, cited: tuple[int, int] | None, *, section: Section | None = None
) -> OpenedPassage:
    """The passage with the text around it. Reads a part of the file.

    Args:
        passage: the passage.
        cited: byte offsets of the words to light, in the passage's text; None lights all of it.
        section: the part around it of the extracted text that the spans refer to, for `spans_of == "text"`;
            None if that is no longer stored.
    """
    name = Path(passage.file).name
    if passage.spans_of == "text":
        if section is None:
            return _alone(passage, cited, f"{name} is no longer in the collection.")
        window = _cut(passage, section.data, section.start, whole=True)
    else:
        try:
            window = _read(passage)
        except (OSError, ValueError):
            return _alone(passage, cited, f"{name} cannot be read any more.")
    before, own, after = window
    for encoding in _ENCODINGS:
        if own.decode(encoding, "replace") == passage.text:
            return OpenedPassage(
                (
                    *_piece(before.decode(encoding, "replace"), "around"),
                    *_lit(passage, cited, encoding),
                    *_piece(after.decode(encoding, "replace"), "around"),
                )
            )
    return _alone(passage, cited, f"{name} has changed since it was indexed.")


def _read(passage: StoredPassage) -> tuple[bytes, bytes, bytes]:
    path = Path(passage.file)
    if not path.is_file():  # opening a pipe would wait for its writer
        raise OSError("not a file")
    begin = max(0, passage.start - AROUND_BYTES)
    with path.open("rb") as file:
        file.seek(begin)
        data = file.read(passage.end + AROUND_BYTES - begin)
    return _cut(passage, data, begin, whole=begin == 0)


def _cut(
    passage: StoredPassage, data: bytes, begin: int, *, whole: bool
) -> tuple[bytes, bytes, bytes]:
    """Bytes before, of and after the passage; those around it begin and end with a line, if they can.

    Args:
        passage: the passage.
        data: a part of the document.
        begin: its offset.
        whole: whether it begins with a line.
    """
    start, end = passage.start - begin, passage.end - begin
    first = max(0, start - AROUND_BYTES)
    before, after = data[first:start], data[end : end + AROUND_BYTES]
    if (first > 0 or not whole) and b"\n" in before:
        before = before.split(b"\n", 1)[1]
    if len(after) == AROUND_BYTES and b"\n" in after:
        after = after.rsplit(b"\n", 1)[0]
    return before, data[start:end], after


def _lit(passage: StoredPassage, cited: tuple[int, int] | None, encoding: str) -> tuple[Piece, ...]:
    """The passage with the cited words lit; all of it if there are no particular ones."""
    data = passage.text.encode(encoding, "replace")
    start, end = (0, len(data)) if cited is None else (one - passage.start for one in cited)
    if not 0 <= start < end <= len(data):
        start, end = 0, len(data)
    return (
        *_piece(data[:start].decode(encoding, "replace"), "passage"),
        *_piece(data[start:end].decode(encoding, "replace"), "cited"),
        *_piece(data[end:].decode(encoding, "replace"), "passage"),
    )


def _alone(passage: StoredPassage, cited: tuple[int, int] | None, note: str) -> OpenedPassage:
    return OpenedPassage(_lit(passage, cited, "utf-8"), note)


def _piece(text: str, part: str) -> tuple[Piece, ...]:
    return (Piece(text, part),) if text else ()  # type: ignore[arg-type]  # one of the three
