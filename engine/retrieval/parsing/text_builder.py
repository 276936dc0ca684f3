"""`TextBuilder`: puts a text together from pieces, and remembers where its parts begin."""

from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.outline import RowHeader, TextHeading


class TextBuilder:
    """A growing text with its headings, breaks, pages and header rows.

    Attributes:
        title: of the document.
        notes: see `ParsedDocument`.
    """

    def __init__(self, most: int) -> None:
        """Begin.

        Args:
            most: characters of the text at which `add` raises.
        """
        self._parts: list[str] = []
        self._length, self._most = 0, most
        self._newlines = 2  # at the end of the text, as if one had ended before it
        self._headings: list[TextHeading] = []
        self._breaks: list[int] = []
        self._pages: list[int] = []
        self._row_headers: list[RowHeader] = []
        self.title: str | None = None
        self.notes: list[str] = []

    def __len__(self) -> int:
        return self._length

    def add(self, text: str) -> None:
        """Append a text as it is.

        Raises:
            TextTooLong: the text has become longer than it may.
        """
        if not text:
            return
        self._parts.append(text)
        self._length += len(text)
        if self._length > self._most:
            raise TextTooLong
        stripped = text.rstrip("\n")
        newlines = len(text) - len(stripped)
        self._newlines = newlines if stripped else self._newlines + newlines

    def line(self) -> None:
        """End the line, unless nothing is on it."""
        if self._newlines < 1:
            self.add("\n")

    def paragraph(self) -> None:
        """Leave one blank line."""
        if self._newlines < 2:
            self.add("\n" * (2 - self._newlines))

    @property
    def at_line_start(self) -> bool:
        """Whether nothing is on the line yet."""
        return self._newlines > 0

    def heading(self, level: int, title: str, start: int | None = None) -> None:
        """Remember that a section begins, here or at an earlier offset."""
        self._headings.append(TextHeading(level, title, self._length if start is None else start))

    def mark_break(self) -> None:
        """Remember that a chunk may well begin here."""
        self._breaks.append(self._length)

    def mark_page(self) -> None:
        """Remember that a page begins here."""
        self._pages.append(self._length)

    def row_header(self, text: str | None) -> None:
        """Remember that table rows begin here, with their header row; see `TableRows`."""
        self._row_headers.append(RowHeader(self._length, text))

    def append(self, part: Extracted) -> None:
        """Append another text with what is known of it, but its title; its tables end with it."""
        begin = self._length
        self.add(part.text)
        self._headings += (one._replace(start=one.start + begin) for one in part.headings)
        self._breaks += (one + begin for one in part.breaks)
        self._pages += (one + begin for one in part.pages)
        self._row_headers += (
            one._replace(start=min(one.start + begin, self._length)) for one in part.row_headers
        )
        if part.row_headers and part.row_headers[-1].text is not None:
            self.row_header(None)
        self.notes += part.notes

    @property
    def room(self) -> int:
        """Characters that may be added."""
        return self._most - self._length

    def extracted(self) -> Extracted:
        """What was collected."""
        return Extracted(
            "".join(self._parts),
            tuple(self._headings),
            tuple(self._breaks),
            tuple(self._pages),
            self.title,
            tuple(self.notes),
            row_headers=tuple(self._row_headers),
        )


class TextTooLong(Exception):
    """A parser extracts more text than is permitted."""
