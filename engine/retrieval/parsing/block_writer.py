"""`BlockWriter`: puts blocks into a text, with its headings, rows and what names the columns of rows."""

from collections.abc import Iterable

from engine.retrieval.parsing.table_header import column_names, header_rows
from engine.retrieval.parsing.text_builder import TextBuilder
from engine.retrieval.parsing.text_flow import Block

_SAMPLE = 3
"""Rows from which `header_rows` tells whether the first ones name the columns."""


class BlockWriter:
    """Writes the blocks of one document. The first rows of a table wait for the ones below them."""

    def __init__(self, builder: TextBuilder) -> None:
        """Write to a text, which may also be written to between `finish` and the next block."""
        self._builder = builder
        self._waiting: list[Block] = []
        self._has_header = False

    def write(self, blocks: Iterable[Block]) -> None:
        """Append blocks; headings begin sections, rows are places where a chunk may begin."""
        for block in blocks:
            is_row_below = bool(block.cells) and block.tight
            if not is_row_below:
                self.finish()
            if block.cells and (self._waiting or not is_row_below):
                self._waiting.append(block)
                if len(self._waiting) == _SAMPLE:
                    self._write_first_rows()
            else:
                self._add(block)

    def finish(self) -> None:
        """Write what waits, and end the table."""
        self._write_first_rows()
        if self._has_header:
            self._builder.row_header(None)
            self._has_header = False

    def _write_first_rows(self) -> None:
        rows, self._waiting = self._waiting, []
        named = next((at for at, one in enumerate(rows) if not one.names_columns), len(rows))
        count = named or header_rows([one.column_cells for one in rows])
        for at, row in enumerate(rows):
            if at == count > 0:
                self._builder.line()
                names = column_names([one.column_cells for one in rows[:count]])
                self._builder.row_header(" | ".join(names))
                self._has_header = True
            self._add(row)

    def _add(self, block: Block) -> None:
        if block.tight:
            self._builder.line()
        else:
            self._builder.paragraph()
        if block.level:
            self._builder.heading(block.level, block.title)
        elif block.cells:
            self._builder.mark_break()
        self._builder.add(block.text)
