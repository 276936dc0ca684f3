"""`Passage`: a chunk that a search has found."""

from dataclasses import dataclass, field
from typing import Literal

from engine.retrieval.api.parsed_document import SpansOf

Mode = Literal["hybrid", "dense", "lexical"]
AttributeValue = str | float | bool


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk, where it comes from, and how well it fits the query.

    Attributes:
        chunk_id: identifies the chunk in its collection's database.
        document_id: identifies its document.
        file: absolute path of the document.
        title: the document's own title, otherwise None.
        start: byte offset of its first byte (see `ParsedDocument`).
        end: byte offset behind its last byte.
        spans_of: whether offsets refer to the file or to its extracted text.
        text: the text of the span.
        tokens: length in tokens of the embedding model.
        heading_path: the titles of the sections around it, outermost first; inside of a table its header row
            is the last.
        section_start: byte offset of the section around it.
        section_end: byte offset behind that section.
        page: page on which it begins, from 1; None without pages.
        line: line on which it begins, from 1.
        rank: position in the result, from 1.
        score: what the result is ordered by; higher is better. Comparable within one result only.
        dense: cosine with the query; None if it was not computed.
        lexical: BM25 with its sign changed, so that higher is better; None if no word was found.
        attributes: values that the user gave the document.
        in_table: whether it begins inside of a table, below its header row.
    """

    chunk_id: int
    document_id: int
    file: str
    title: str | None
    start: int
    end: int
    spans_of: SpansOf
    text: str
    tokens: int
    heading_path: tuple[str, ...]
    section_start: int
    section_end: int
    page: int | None
    line: int
    rank: int
    score: float
    dense: float | None = None
    lexical: float | None = None
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    in_table: bool = False

    @property
    def header(self) -> str:
        """The header row of the table in which it begins, or the table's name; empty outside of tables."""
        return self.heading_path[-1] if self.in_table and self.heading_path else ""

    @property
    def shown_text(self) -> str:
        """The text, below the header of its table."""
        return f"{self.header}\n{self.text}" if self.header else self.text
