"""`attached_text`: the text of a file as a message has it."""

from engine.retrieval.parsing.document_reader import FileText
from engine.text.fenced import fenced


def attached_text(file: FileText) -> str:
    """The file's name and its text in a fence that nothing in it can close."""
    pages = f" ({file.pages} page{'' if file.pages == 1 else 's'})" if file.pages else ""
    return f"{file.name}{pages}:\n{fenced(file.text.rstrip())}"
