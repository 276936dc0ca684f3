"""`read_text`: the text of a source as a model reads it: rows of tables with the names of their columns.

Small models take a value from the wrong row or column of a table with bars; `Branch: Airport; Opens: 05:15`
has no columns to count (docs/retrieval.md has figures).
"""

from engine.retrieval.answering.numbered_passage import NumberedPassage
from engine.retrieval.answering.table_rows import MAX_ROWS, TableRow, tables_of
from engine.retrieval.api.passage import Passage

_MAX_GROWTH = 3
"""A table whose names are longer than its values is read as it is: names would take the room of passages."""


def read_text(source: NumberedPassage) -> str:
    """The text of a source; rows without a header are as they are, and so is a text of very many rows."""
    whole = f"{source.header}\n{source.text}" if source.header else source.text
    tables = tables_of(source)
    if not any(row.header for row in tables.rows) or len(tables.rows) >= MAX_ROWS:
        return whole
    pieces = [(start, source.text[start:end].strip("\n")) for start, end in tables.prose]
    pieces += [(row.start, _labelled(row, source.text)) for row in tables.rows]
    text = "\n".join(piece for _, piece in sorted(pieces) if piece)
    return text if len(text) <= _MAX_GROWTH * len(whole) else whole


def passage_read_text(passage: Passage) -> str:
    """`read_text` of a passage that has no number yet."""
    return read_text(NumberedPassage.of(0, passage))


def _labelled(row: TableRow, text: str) -> str:
    """A row with the names of its columns; empty cells are left out."""
    if not row.header:
        return text[row.start : row.end]
    named = zip(row.header, row.cells, strict=True)
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)
