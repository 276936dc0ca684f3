"""`NumberedPassage`: a numbered text that the model reads and can cite."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from engine.retrieval.api.passage import Passage


@dataclass(frozen=True, slots=True)
class NumberedPassage:
    """A passage, or the section around it, under the number by which the answer cites it.

    Attributes:
        n: the number, from 1.
        passage: the passage that was found; of several in one section, the best.
        text: what the model reads: the passage's text or its section's.
        start: byte offset of `text` (see `ParsedDocument`).
        end: byte offset behind it.
        header: the header row of the table in which `text` begins; empty if it has it, or is in no table.
    """

    n: int
    passage: Passage
    text: str
    start: int
    end: int
    header: str = ""

    @classmethod
    def of(cls, n: int, passage: Passage) -> Self:
        """A passage as it was found."""
        return cls(n, passage, passage.text, passage.start, passage.end, passage.header)

    @property
    def is_section(self) -> bool:
        """Whether the text is more than the passage."""
        return (self.start, self.end) != (self.passage.start, self.passage.end)

    def byte_span(self, start: int, end: int) -> tuple[int, int] | None:
        """Byte offsets of the characters `text[start:end]`; None if the file's encoding is not UTF-8."""
        if self.end - self.start != len(self.text.encode()):
            return None
        first = self.start + len(self.text[:start].encode())
        return first, first + len(self.text[start:end].encode())

    def line_at(self, at: int) -> int:
        """The line, from 1, of the document on which the character `text[at]` is."""
        above = self.text.encode()[: max(0, self.passage.start - self.start)].count(b"\n")
        return max(1, self.passage.line - above + self.text.count("\n", 0, at))


def number_passages(passages: Iterable[Passage]) -> list[NumberedPassage]:
    """Passages as sources, numbered in their order."""
    return [NumberedPassage.of(n, passage) for n, passage in enumerate(passages, start=1)]


def labels_of(passage: Passage) -> str:
    """What a passage is called: names of it stand in for those that its sentences leave out."""
    name = passage.file.replace("\\", "/").rsplit("/", 1)[-1]
    return " ".join((name, passage.title or "", *passage.heading_path))
