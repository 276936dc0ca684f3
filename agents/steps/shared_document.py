"""The task and the files as all agents read them: the shared part of their prompts.

It depends on the task alone, never on the agent, so that all agents of a task share one prefix. Files that
hold private data are named and not shown: a run that needs one reads it with a tool, which labels the run.
"""

from weakref import WeakKeyDictionary

from agents.tools.sensitive import FILE_TAINT, file_taint
from agents.tools.tool import Taint
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

MAX_CHARS = 60_000
PRIVATE_NOTE = "[not shown: it holds private data]"
_MAX_NAMES = 100
_PRIVATE: "WeakKeyDictionary[SourceFile, bool]" = WeakKeyDictionary()
"""Whether a file holds private data; found once, for all runs over a workspace."""


def shared_taint(document: str, workspace: Workspace) -> frozenset[Taint]:
    """Labels of the shared document, which the model reads without a tool."""
    labels = file_taint(document) if document.strip() else frozenset[Taint]()
    return labels | FILE_TAINT if len(workspace) else labels


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
        text = PRIVATE_NOTE if is_private(file) else _numbered(file)
        parts.append(f"--- {file.path}\n{text[:left]}")
        left -= len(text)
    return "\n\n".join(parts)


def shown_files(workspace: Workspace) -> list[SourceFile]:
    """The files whose lines a prompt can show: those that hold no private data."""
    return [file for file in workspace if not is_private(file)]


def _numbered(file: SourceFile) -> str:
    return "\n".join(f"{number} {line}" for number, line in enumerate(file.lines, 1))


def is_private(file: SourceFile) -> bool:
    """Whether a file holds secrets or personal data, which no model is shown."""
    known = _PRIVATE.get(file)
    if known is None:
        known = Taint.PRIVATE in file_taint(file.text, file.path)
        _PRIVATE[file] = known
    return known
