"""`LargeText`: a text file that is too long to be read at once, in segments.

Plain text, Markdown and rows (CSV, JSON Lines) in UTF-8. Everything else of this length is refused before it
is read. Memory: a few times a segment.

The file may change between two readings, as logs do. What counts are its first `size` bytes as they were when
it was opened; `unchanged` tells whether the segments together were these bytes.
"""

import codecs
import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import Heading, ParsedDocument, TableRows
from engine.retrieval.parsing.documents import file_document
from engine.retrieval.parsing.file_type import FileType, detect_type
from engine.retrieval.parsing.markdown import markdown_outline
from engine.retrieval.parsing.outline import Outline
from engine.retrieval.parsing.parser_limits import ParserLimits
from engine.retrieval.parsing.regular_file import open_regular_file, too_long
from engine.retrieval.parsing.rows import rows_outline
from engine.retrieval.parsing.text_encoding import DecodedText, refuse_binary

_BLOCK = 1 << 20
_SAMPLE = 1 << 16
_STREAMED = ("text", "markdown", "rows")


class Hash(Protocol):
    """A hash of `hashlib`."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""

    def hexdigest(self) -> str:
        """The hash of all bytes."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the file.

    Attributes:
        document: its text, with offsets in the whole file; headings that are open where it begins come first.
        end: offset of the byte behind it.
        last: whether it ends with the file.
    """

    document: ParsedDocument
    end: int
    last: bool


class LargeText:
    """The first `size` bytes of a text file. For one thread at a time; `open_large_text` makes one.

    Attributes:
        path: the file.
        size: bytes that are read.
        file_type: its type.
        start: offset of the text: the length of a byte order mark, otherwise 0.
    """

    def __init__(
        self, path: Path, size: int, file_type: FileType, start: int, segment_bytes: int
    ) -> None:
        self.path, self.size, self.file_type, self.start = path, size, file_type, start
        self._segment_bytes = segment_bytes
        self._whole = ""
        self._segments = _new_hash()
        self._segments.update(codecs.BOM_UTF8[:start])
        self._hashed = start

    def content_hash(self) -> str:
        """The hash of its bytes, all of which are read.

        Raises:
            Unreadable: it is not UTF-8, or has become shorter.
            OSError: it cannot be read.
        """
        digest, decoder = _new_hash(), codecs.getincrementaldecoder("utf-8")()
        at = 0
        with open_regular_file(self.path) as file:
            while at < self.size:
                block = file.read(min(_BLOCK, self.size - at))
                if not block:
                    raise Unreadable("It has become shorter while it was read.")
                digest.update(block)
                at += len(block)
                try:
                    decoder.decode(block, at == self.size)
                except UnicodeDecodeError as error:
                    raise Unreadable(
                        f"It has {self.size:,} bytes and is not UTF-8; files of this length are read only in "
                        "UTF-8."
                    ) from error
        self._whole = digest.hexdigest()
        return self._whole

    def segment(
        self,
        start: int,
        open_headings: tuple[Heading, ...] = (),
        open_rows: TableRows | None = None,
    ) -> Segment:
        """The segment that begins at an offset, the first byte of a character.

        Segments are read in order; each begins inside of the one before it or at its end.

        Args:
            start: the offset.
            open_headings: sections of which it is a part, outermost first.
            open_rows: the table in which it begins, below the header row.

        Raises:
            Unreadable: the bytes are no text any more.
            OSError: the file cannot be read.
        """
        with open_regular_file(self.path) as file:
            file.seek(start)
            data = file.read(min(self._segment_bytes, self.size - start))
        if start + len(data) > self._hashed:
            self._segments.update(data[self._hashed - start :])
            self._hashed = start + len(data)
        last = start + len(data) >= self.size
        try:
            text, used = codecs.utf_8_decode(data, "strict", last)
        except UnicodeDecodeError as error:
            raise _changed() from error
        if not used:
            raise _changed()
        decoded = DecodedText(text, "utf-8", start, "file")
        outline = self._outline(text, start, open_rows)
        document = file_document(decoded, self.file_type, outline)
        around = tuple(replace(one, start=start) for one in open_headings)
        rows = () if open_rows is None else (replace(open_rows, start=start),)
        return Segment(
            replace(
                document,
                headings=around + document.headings,
                table_rows=rows + document.table_rows,
            ),
            start + used,
            last,
        )

    def check_unchanged(self) -> None:
        """Check after the last segment that the segments were the bytes that `content_hash` read.

        Raises:
            Unreadable: they were not.
        """
        if self._segments.hexdigest() != self._whole:
            raise _changed()

    def _outline(self, text: str, start: int, open_rows: TableRows | None) -> Outline:
        match self.file_type.format:
            case "markdown":
                in_table = open_rows is not None and open_rows.header is not None
                return markdown_outline(text, goes_on=start != self.start, in_table=in_table)
            case "rows":
                return rows_outline(
                    text, named=self.file_type.named_columns and start == self.start
                )
        return Outline()


def open_large_text(path: Path, limits: ParserLimits) -> LargeText:
    """A file that is longer than `limits.file_bytes`; only its beginning is read.

    Raises:
        Unreadable: it is no text that can be read in segments.
    """
    try:
        with open_regular_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_SAMPLE)
    except OSError as error:
        raise Unreadable(f"It cannot be read: {error.strerror or error}.") from error
    file_type = detect_type(path.name, head)
    if file_type.format not in _STREAMED:
        raise too_long(size, limits.file_bytes)
    refuse_binary(codecs.utf_8_decode(head, "replace", False)[0])
    start = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
    return LargeText(path, size, file_type, start, limits.segment_bytes)


def _new_hash() -> Hash:
    return hashlib.blake2b(digest_size=20)


def _changed() -> Unreadable:
    return Unreadable("It has changed while it was read.")
