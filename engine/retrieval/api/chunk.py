"""`Chunk`: a part of a document that is embedded, indexed and found as one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document, at most as long as the embedding model takes.

    Attributes:
        text: the text of the span, unchanged.
        start: byte offset of its first byte (see `ParsedDocument`).
        end: byte offset behind its last byte.
        tokens: length in tokens of the embedding model, without special tokens.
        heading_path: the titles of the sections around it, outermost first.
        section_start: byte offset of the section that is read in its place.
        section_end: byte offset behind that section.
        page: number of the page on which it begins, from 1; None without pages.
        line: number of the line on which it begins, from 1.
        in_table: whether it begins inside of a table, below its header row. It is then embedded and shown
            with its headings, the last of which is the header row if that is known.
    """

    text: str
    start: int
    end: int
    tokens: int
    heading_path: tuple[str, ...]
    section_start: int
    section_end: int
    page: int | None
    line: int
    in_table: bool = False

    @property
    def embedded_text(self) -> str:
        """What the embedding model reads."""
        return "\n".join((*self.heading_path, self.text)) if self.in_table else self.text
