"""`extract_notebook`: the cells of a Jupyter notebook, with their text outputs."""

import json
from typing import Any

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.markdown import markdown_outline
from engine.retrieval.parsing.text_builder import TextBuilder

_MAX_OUTPUT = 4_000
"""Characters of one output that are kept: a training log says little that is searched for."""


def extract_notebook(data: bytes, most: int) -> Extracted:
    """Markdown cells with their headings, code cells, and their outputs as text.

    Raises:
        Unreadable: it is no notebook.
        ValueError: it is no JSON.
    """
    notebook = json.loads(data)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise Unreadable("It is no notebook of format 4: it has no list of cells.")
    builder = TextBuilder(most)
    for cell in cells:
        if isinstance(cell, dict):
            _add_cell(builder, cell)
    return builder.extracted()


def _add_cell(builder: TextBuilder, cell: dict[str, Any]) -> None:
    source = _joined(cell.get("source"))
    builder.paragraph()
    builder.mark_break()
    if cell.get("cell_type") == "markdown":
        outline = markdown_outline(source)
        builder.title = builder.title or outline.title
        builder.append(
            Extracted(source, outline.headings, outline.breaks, row_headers=outline.row_headers)
        )
        return
    builder.add(source)
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        text = _output_text(output) if isinstance(output, dict) else ""
        if text.strip():
            builder.paragraph()
            builder.add(text[:_MAX_OUTPUT])


def _output_text(output: dict[str, Any]) -> str:
    data = output.get("data")
    if isinstance(data, dict):
        return _joined(data.get("text/plain"))
    return _joined(output.get("text"))


def _joined(value: object) -> str:
    if isinstance(value, list):
        return "".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""
