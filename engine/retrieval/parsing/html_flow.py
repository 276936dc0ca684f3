"""`Flow`: running text of an HTML page as browsers lay it out: white space collapses, blocks begin lines."""

import re

from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.text_builder import TextBuilder

_SPACE = re.compile("[ \t\r\n\f\xa0]+")
_INVISIBLE = re.compile("[\xad\u200b\u2060\ufeff]")
"""Characters that permit or forbid a line break and are not seen, such as soft hyphens."""


class Flow:
    """Adds text to a builder. Spaces at the ends of lines and between blocks are left out.

    Attributes:
        builder: what the text is added to.
    """

    def __init__(self, builder: TextBuilder) -> None:
        """Begin at the start of a line."""
        self.builder = builder
        self._space = False
        self._marker = ""

    def text(self, data: str, *, preformatted: bool = False) -> None:
        """Add text of a paragraph; if it is preformatted, with its spaces and lines."""
        data = _INVISIBLE.sub("", data)
        if preformatted:
            if data:
                self._begin(data)
                self.builder.add(data.replace("\xa0", " "))
            return
        data = _SPACE.sub(" ", data)
        text = data.strip(" ")
        if not text:
            self._space = self._space or bool(data)
            return
        if data[0] == " ":
            self._space = True
        self._begin(text)
        self.builder.add(text)
        self._space = data[-1] == " "

    def _begin(self, text: str) -> None:
        """Write what has to stand before a text: the marker of a list item, or a space."""
        if self._marker:
            self.builder.add(self._marker)
            self._marker = ""
        elif self._space and not self.builder.at_line_start and text[0] != "\n":
            self.builder.add(" ")
        self._space = False

    def space(self) -> None:
        """Separate what follows on the same line: a button, or a word that stands apart."""
        self._space = True

    def line(self) -> None:
        """End the line, unless nothing is on it."""
        if not self._marker:
            self.builder.line()
        self._space = False

    def break_line(self) -> None:
        """End the line; on an empty one, the paragraph."""
        if self.builder.at_line_start:
            self.paragraph()
        else:
            self.line()

    def paragraph(self) -> None:
        """Leave a blank line, unless the item of a list has only begun."""
        if not self._marker:
            self.builder.paragraph()
        self._space = False

    def begin_item(self, marker: str) -> None:
        """Begin an item of a list, whose marker stands before its first text."""
        self.line()
        self._marker += marker

    def end_item(self) -> None:
        """End an item; one without text leaves nothing."""
        self._marker = ""
        self.line()

    def append(self, part: Extracted) -> None:
        """Add another text as blocks of its own."""
        self.paragraph()
        if part.text.strip():
            self._begin(part.text)
            self.builder.append(part)
        self.paragraph()

    def heading(self, level: int, title: str) -> None:
        """Add a heading as a paragraph of one line."""
        self.paragraph()
        self._begin(title)
        self.builder.heading(level, title)
        self.builder.add(title)
        self.paragraph()
