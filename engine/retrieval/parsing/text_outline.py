"""`text_outline`: the outline of a text of any format that is read as it is, but source code."""

from engine.retrieval.parsing.file_type import FileType
from engine.retrieval.parsing.markdown import markdown_outline
from engine.retrieval.parsing.outline import Outline
from engine.retrieval.parsing.rows import rows_outline
from engine.retrieval.parsing.rst import rst_outline


def text_outline(text: str, file_type: FileType) -> Outline:
    """Headings, rows and header rows; none of a plain text."""
    match file_type.format:
        case "markdown":
            return markdown_outline(text)
        case "rst":
            return rst_outline(text)
        case "rows":
            return rows_outline(text, named=file_type.named_columns)
    return Outline()
