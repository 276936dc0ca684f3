"""`ParsedDocument`: the text of one file, and what its offsets refer to."""

from dataclasses import dataclass
from typing import Literal

SpansOf = Literal["file", "text"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, or the name of a definition in source code.

    Attributes:
        level: 1 for the outermost.
        title: its text, without markup.
        start: byte offset of the section that it begins.
    """

    level: int
    title: str
    start: int


@dataclass(frozen=True, slots=True)
class TableRows:
    """Where rows of a table begin that belong to a header row above them.

    They end where the next ones begin.

    Attributes:
        start: byte offset of the first of them.
        header: the header row; empty if none is known, None if what begins there is no table.
    """

    start: int
    header: str | None


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """The text of a file.

    Offsets are bytes, from 0, of what `spans_of` names. Of a text file it is the file itself, so that
    a span read from the file is the text, byte for byte. Of other formats it is the UTF-8 of `text`.

    Attributes:
        media_type: its type by content, for example `text/markdown`.
        text: the text. Of a file it is the decoded file, without a byte order mark.
        spans_of: what offsets refer to.
        encoding: Python's name of the file's encoding; `utf-8` for extracted text.
        start: offset of the first byte of `text`: the length of a byte order mark, otherwise 0.
        headings: in the order of their offsets.
        breaks: offsets where a chunk may best begin, in order: definitions, paragraphs, rows. May be empty.
        table_rows: in the order of their offsets.
        pages: offsets at which the pages begin; empty if there are none.
        title: a title that the document itself has.
        language: the programming language of source code, otherwise None.
        notes: one sentence each about parts that could not be read.
    """

    media_type: str
    text: str
    spans_of: SpansOf
    encoding: str = "utf-8"
    start: int = 0
    headings: tuple[Heading, ...] = ()
    breaks: tuple[int, ...] = ()
    table_rows: tuple[TableRows, ...] = ()
    pages: tuple[int, ...] = ()
    title: str | None = None
    language: str | None = None
    notes: tuple[str, ...] = ()
