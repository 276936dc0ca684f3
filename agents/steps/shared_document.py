"""The task and the files as all agents read them: the shared part of their prompts.

It depends on the task alone, never on the agent, so that all agents of a task share one prefix.
"""

from agents.tools.sensitive import file_taint
from agents.tools.tool import Taint
from agents.workspace.workspace import Workspace

MAX_CHARS = 60_000
_MAX_NAMES = 100


def shared_taint(document: str, workspace: Workspace) -> frozenset[Taint]:
    """Labels of the shared document: the model reads it without a tool."""
    labels = file_taint(document) if document.strip() or len(workspace) else frozenset[Taint]()
    left = MAX_CHARS - len(document)
    for file in workspace:
        if left <= 0 or Taint.PRIVATE in labels:
            break
        text = "\n".join(file.lines)
        labels |= file_taint(text[:left], file.path)
        left -= len(text)
    return labels


def shared_document(document: str, workspace: Workspace) -> str:
    """The document of a task, then its files with numbered lines, cut at `MAX_CHARS`."""
    parts = [document.strip()] if document.strip() else []
    left = MAX_CHARS - len(document)
    names = [file.path for file in workspace]
    if names:
        more = len(names) - _MAX_NAMES
        listed = ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
        parts.append(f"Files: {listed}")
    for file in workspace:
        if left <= 0:
            break
        text = "\n".join(f"{number} {line}" for number, line in enumerate(file.lines, 1))
        parts.append(f"--- {file.path}\n{text[:left]}")
        left -= len(text)
    return "\n\n".join(parts)
