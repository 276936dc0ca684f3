"""`attached_text`: the text of a file as a message has it."""

import re

from engine.retrieval.parsing.document_reader import FileText


def attached_text(file: FileText) -> str:
    """The file's name and its text in a fence that nothing in it can close."""
    longest = max((len(run) for run in re.findall("`+", file.text)), default=0)
    fence = "`" * max(3, longest + 1)
    pages = f" ({file.pages} page{'' if file.pages == 1 else 's'})" if file.pages else ""
    return f"{file.name}{pages}:\n{fence}\n{file.text.rstrip()}\n{fence}"
