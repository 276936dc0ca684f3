"""`TextFlow`: nested paragraphs, tables and text boxes of a document as blocks in reading order.

A row of a table is one line with bars, whatever its cells hold: paragraphs of a cell are joined, a table
inside of a cell is written into the cell. Every cell keeps its column. A row that is a single cell, or
has nothing but a table, only frames what is in it. Asides (text boxes, notes, comments) follow the paragraph
or the outermost table in which they are anchored.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_COLUMNS = 1024
"""Columns that one cell may cover, whatever the file says."""
_FILE_NAME = re.compile(r"[^/]*\.(?:png|jpe?g|gif|bmp|tiff?|svg|emf|wmf|webp)", re.IGNORECASE)
"""What programs put in place of a description."""
_NOTE_MARK = re.compile(r"\[\^[^\]]*\]")
_SPACE = re.compile(r"[ \t\r\n]+")


class Block(NamedTuple):
    """A paragraph, or a row of a table.

    Attributes:
        text: its text; of a row its line.
        level: of the heading that it is, otherwise 0.
        title: of the heading.
        cells: of a row; empty for a paragraph.
        tight: it follows the block before it without a blank line.
        names_columns: the document says of this row that its cells name the columns.
        spanned: indices of its cells that are empty because one to the left of them spans their columns.
    """

    text: str
    level: int = 0
    title: str = ""
    cells: tuple[str, ...] = ()
    tight: bool = False
    names_columns: bool = False
    spanned: frozenset[int] = frozenset()

    @property
    def column_cells(self) -> tuple[str, ...]:
        """The cells, each in all columns that it spans."""
        found: list[str] = []
        for at, cell in enumerate(self.cells):
            found.append(found[-1] if at in self.spanned and found else cell)
        return tuple(found)


def picture_text(description: str) -> str:
    """What stands for a picture that its author has described; nothing for one without a description."""
    text = " ".join(description.split())
    return f"[Picture: {text}] " if text and not _FILE_NAME.fullmatch(text) else ""


def joined(blocks: Iterable[Block]) -> str:
    """Blocks as one line: rows end with a semicolon, their cells with a comma."""
    parts: list[str] = []
    after_row = False
    for block in blocks:
        if parts:
            parts.append("; " if after_row and block.cells else " ")
        text = ", ".join(filter(None, block.cells)) if block.cells else block.text
        parts.append(_SPACE.sub(" ", text).strip())
        after_row = bool(block.cells)
    return "".join(parts)


def comment_block(author: str, blocks: Iterable[Block]) -> Block:
    """A comment as one line with its author."""
    said = f"Comment by {author}" if author else "Comment"
    return Block(f"[{said}: {joined(blocks)}]")


@dataclass(slots=True)
class _Story:
    """A run of paragraphs and tables: the body, a cell, or an aside.

    Attributes:
        blocks: what is finished; of the body it is written at once.
        line: pieces of the paragraph that is being read.
        lead: level and title of a heading that ends within the line.
        cells: of the row that is being read.
        spanned: indices of the row's cells that the cell to the left of them spans.
        places: how many cells the row has, each counted once, however many columns it spans.
        asides: anchored in the paragraph or table that is being read.
        row_asides: number of asides before the row.
        first_row: no row of the table has been written yet.
        is_cell: its asides go to the story around the table.
    """

    is_cell: bool = False
    blocks: list[Block] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    lead: tuple[int, str] = (0, "")
    cells: list[list[Block]] | None = None
    spanned: set[int] = field(default_factory=set)
    places: int = 0
    asides: list[Block] = field(default_factory=list)
    row_asides: int = 0
    first_row: bool = True


class TextFlow:
    """Collects the blocks of one document. Calls to begin and end something must be paired."""

    def __init__(self, sink: Callable[[Block], None]) -> None:
        """Begin.

        Args:
            sink: takes each block of the body when it is finished.
        """
        self._sink = sink
        self._stories = [_Story()]

    def put(self, text: str) -> None:
        """Add characters to the paragraph; soft hyphens are left out: nobody sees them in a whole word."""
        self._stories[-1].line.append(text.replace("\xad", ""))

    def mark(self) -> int:
        """A place in the paragraph, for `take`."""
        return len(self._stories[-1].line)

    def take(self, mark: int) -> str:
        """Take out what was added to the paragraph since a place."""
        line = self._stories[-1].line
        text = "".join(line[mark:])
        del line[mark:]
        return text

    def end_paragraph(self, level: int = 0, number: str = "", *, tight: bool = False) -> None:
        """End the paragraph; one without text is left out.

        Args:
            level: of the heading that it is, otherwise 0.
            number: what stands before it, such as `3.2` or `-`.
            tight: it follows the block before it without a blank line.
        """
        story = self._stories[-1]
        text = "".join(story.line).strip()
        story.line = []
        level, title = story.lead if story.lead[0] else (level, text)
        story.lead = (0, "")
        if text:
            text = f"{number} {text}" if number else text
            title = _NOTE_MARK.sub("", f"{number} {title}" if number else title)
            title = " ".join(title.split())
            self._emit(Block(text, level, title if level else "", (), tight))
        self._write_asides()

    def end_heading_within(self, level: int) -> None:
        """The paragraph so far is a heading, and its line goes on as text."""
        story = self._stories[-1]
        story.lead = (level, "".join(story.line).strip())
        story.line.append(" ")

    def finish(self) -> None:
        """Write what is left at the end of a part."""
        self.end_paragraph()

    def add_aside(self, blocks: Iterable[Block]) -> None:
        """Add blocks that are anchored here."""
        self._stories[-1].asides += blocks

    def begin_aside(self) -> None:
        """What follows is anchored in the paragraph, but is no part of it."""
        self._stories.append(_Story())

    def end_aside(self) -> None:
        """End it."""
        self.add_aside(self.take_aside())

    def take_aside(self) -> list[Block]:
        """End it, and do not anchor it."""
        self.end_paragraph()
        return self._stories.pop().blocks

    def begin_table(self) -> None:
        """A table begins, and ends a paragraph that has not."""
        self.end_paragraph()
        self._stories[-1].first_row = True

    def end_table(self) -> None:
        """It ends."""
        self._write_asides()

    def begin_row(self) -> None:
        """A row begins."""
        story = self._stories[-1]
        story.cells, story.places, story.row_asides = [], 0, len(story.asides)
        story.spanned = set()

    def cover(self, columns: int, *, spanned: bool = False) -> None:
        """The row has no text in so many columns; `spanned` by the cell before them."""
        story = self._stories[-1]
        if story.cells is not None:
            first = len(story.cells)
            story.cells += [[] for _ in range(min(columns, MAX_COLUMNS))]
            if spanned:
                story.spanned.update(range(first, len(story.cells)))
            story.places += 0 if spanned else columns

    def begin_cell(self) -> None:
        """A cell begins."""
        self._stories.append(_Story(is_cell=True))

    def end_cell(self, *, keep: bool = True, repeated: int = 1) -> None:
        """It ends; without `keep` it is none of the row's columns, else as many as it is `repeated`."""
        self.end_paragraph()
        story = self._stories.pop()
        around = self._stories[-1]
        if not keep:
            return
        around.asides += story.asides
        if around.cells is None:  # outside of a row, where no cell should be
            for block in story.blocks:
                self._emit(block)
        else:
            around.cells += [story.blocks] * repeated
            around.places += repeated

    def end_row(self, *, keep: bool = True, names_columns: bool = False) -> None:
        """A row ends; without `keep` it is left out."""
        story = self._stories[-1]
        cells, story.cells = story.cells or [], None
        if not keep:
            del story.asides[story.row_asides :]
            return
        filled = [one for one in cells if one]
        if len(filled) == 1 and (story.places == 1 or any(one.cells for one in filled[0])):
            for block in filled[0]:
                self._emit(block)
            return
        texts = tuple(joined(one).replace(" | ", r" \| ") for one in cells)
        if any(texts):
            tight = not story.first_row
            self._emit(
                Block(
                    " | ".join(texts),
                    cells=texts,
                    tight=tight,
                    names_columns=names_columns,
                    spanned=frozenset(story.spanned),
                )
            )
            story.first_row = False

    def _emit(self, block: Block) -> None:
        if len(self._stories) == 1:
            self._sink(block)
        else:
            self._stories[-1].blocks.append(block)

    def _write_asides(self) -> None:
        story = self._stories[-1]
        if not story.is_cell and story.cells is None:
            asides, story.asides = story.asides, []
            for block in asides:
                self._emit(block)
