"""Jupyter notebooks (nbformat 4): valid JSON, the required members, and code cells that parse."""

import json
from collections.abc import Iterator
from typing import Any

from agents.api.finding import Finding
from agents.detectors.audit.syntax.python_errors import python_errors
from agents.detectors.audit.syntax.rules import INVALID_NOTEBOOK, SYNTAX_ERROR
from agents.workspace.source_file import SourceFile


def check_notebook(file: SourceFile) -> Iterator[Finding]:
    """Findings of one notebook; lines are those of the `.ipynb` file."""
    try:
        notebook = json.loads(file.text)
    except json.JSONDecodeError as error:
        yield SYNTAX_ERROR.at(
            file, error.lineno, f"The notebook is not JSON: {error.msg}.", confidence=1.0
        )
        return
    except (ValueError, RecursionError):
        return
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        yield INVALID_NOTEBOOK.at(file, 1, "The notebook has no list of cells.")
        return
    start = 0
    for cell in cells:
        if not isinstance(cell, dict) or "cell_type" not in cell or "source" not in cell:
            yield INVALID_NOTEBOOK.at(file, 1, "A cell of the notebook lacks its type or source.")
            continue
        lines = _source_lines(cell["source"])
        numbers, start = _file_lines(file, lines, start)
        if cell["cell_type"] != "code" or (lines and lines[0].startswith("%%")):
            continue
        for line, reason in python_errors("\n".join(_without_magic(one) for one in lines)):
            at = numbers[min(line, len(numbers)) - 1] if numbers else 1
            yield SYNTAX_ERROR.at(file, at, f"A code cell does not parse: {reason}.")


def _source_lines(source: Any) -> list[str]:
    text = "".join(str(one) for one in source) if isinstance(source, list) else str(source)
    return text.split("\n")


def _without_magic(line: str) -> str:
    """IPython's magics and shell lines as `pass`."""
    body = line.lstrip()
    if body.startswith(("%", "!", "?")) or body.rstrip().endswith("?"):
        return line[: len(line) - len(body)] + "pass"
    return line


def _file_lines(file: SourceFile, lines: list[str], start: int) -> tuple[list[int], int]:
    """For each line of a cell the line of the file that holds it, searched from index `start` on."""
    found: list[int] = []
    position = start
    for line in lines:
        quoted = (json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1])
        for index in range(position, len(file.lines)):
            if any(text in file.lines[index] for text in quoted):
                position = index
                break
        found.append(position + 1)
        position += bool(line) and position + 1 < len(file.lines)
    return found, position
