"""`coder`: code changes that are deterministic, as a patch whose files parse. Other changes need a model.

It renames a symbol, replaces a text, formats, sorts imports, removes unused ones, applies safe lint fixes,
adds annotations that follow from the code, and applies a given diff.
"""

import re
from collections.abc import Mapping

from agents.api.errors import InvalidTask
from agents.outputs.patch import Patch
from agents.procedures.execution.code_edits import (
    Edited,
    annotate_returns,
    rename_symbol,
    replace_text,
    ruff_fix,
)
from agents.procedures.execution.plan_task import files_of
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import MAX_DOCUMENT_CHARS, bounded
from agents.text.unified_diff import apply_diff, make_diff
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_NAME = r"[`'\"]?([^\W\d]\w*)(?:\(\))?[`'\"]?"
_RENAME = re.compile(
    rf"\brename\s+(?:the\s+)?(?:\w+\s+)??{_NAME}\s+(?:to|into|as)\s+{_NAME}", re.IGNORECASE
)
_QUOTE = r"(?:\"([^\"\n]+)\"|'([^'\n]+)'|`([^`\n]+)`)"
_REPLACE = re.compile(
    rf"\breplace\s+(?:the\s+\w+\s+)?{_QUOTE}\s+(?:by|with)\s+{_QUOTE}", re.IGNORECASE
)
_RUFF = (
    (
        "unused imports",
        re.compile(r"\b(?:remove|delete|drop)\b.*\bunused imports?\b", re.IGNORECASE),
    ),
    ("imports", re.compile(r"\b(?:sort|order|organi[sz]e)\b.*\bimports?\b", re.IGNORECASE)),
    ("lint", re.compile(r"\bfix\b.*\b(?:lint|style|ruff)\b|\bruff --?fix\b", re.IGNORECASE)),
    ("format", re.compile(r"\b(?:re)?format\b", re.IGNORECASE)),
)
_ANNOTATE = re.compile(
    r"\b(?:add|insert|write)\b.*\b(?:type hints?|annotations?|type annotations?)\b|\bannotate\b",
    re.I,
)
_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*(?:_test|\.test|\.spec))\.\w+$")


async def run(task: AgentTask, context: ProcedureContext) -> Patch:
    """Make the change of the task, if it is one of the deterministic ones."""
    diff = next(
        (text for text in (_diff(task.inputs), task.document, task.text) if _is_diff(text)), ""
    )
    if not len(task.workspace) and not diff:
        return Patch(cannot_do="There are no files to change.")
    try:
        edited = await context.in_thread(_edit, task.text, diff, task.workspace)
    except InvalidTask as error:
        return Patch(cannot_do=bounded(str(error), 300))
    if edited is None:
        return Patch(
            cannot_do="This change needs a model. Without one: rename, replace, format, sort imports, lint "
            "fixes, annotations, and applying a diff."
        )
    return await context.in_thread(_patch, edited, task.workspace)


def _edit(text: str, diff: str, workspace: Workspace) -> Edited | None:
    """The change that a task asks for, or None if it is none of the known ones.

    Raises:
        InvalidTask: it cannot be made safely, or the given diff does not apply.
    """
    if diff:
        return _applied(diff, workspace)
    chosen = _chosen(text, workspace)
    match = _RENAME.search(text)
    if match:
        return rename_symbol(chosen, match[1], match[2])
    match = _REPLACE.search(text)
    if match:
        old, new = (next(g for g in match.groups()[i : i + 3] if g is not None) for i in (0, 3))
        return replace_text(chosen, old, new)
    python = list(chosen.of("python"))
    kind = next((name for name, pattern in _RUFF if pattern.search(text)), "")
    if not kind and not _ANNOTATE.search(text):
        return None
    if not python:
        raise InvalidTask("There are no Python files to change.")
    return ruff_fix(python, kind) if kind else annotate_returns(python)


def _chosen(text: str, workspace: Workspace) -> Workspace:
    """The files that a task names, or all."""
    named = files_of(text)
    files = [
        file
        for file in workspace
        if any(file.path == name or file.path.endswith(f"/{name}") for name in named)
    ]
    return Workspace(workspace.root, files) if files else workspace


def _applied(diff: str, workspace: Workspace) -> Edited:
    changed = apply_diff(diff, {file.path: file.text for file in workspace}, loose=True)
    texts = {path: "" if text is None else text for path, text in changed.items()}
    return Edited(texts, f"Apply the given diff to {len(texts)} files.")


def _patch(edited: Edited, workspace: Workspace) -> Patch:
    """The patch, if all its files still parse."""
    broken = [path for path, text in edited.texts.items() if _breaks(path, text, workspace)]
    if broken:
        return Patch(
            cannot_do=bounded(f"The change breaks the syntax of {', '.join(broken)}.", 300)
        )
    before = {file.path: file.text for file in workspace}
    diff = "".join(
        make_diff(path, before.get(path) or None, text or None)
        for path, text in sorted(edited.texts.items())
    )
    if not diff:
        return Patch(cannot_do="The change leaves all files as they are.")
    if len(diff) > MAX_DOCUMENT_CHARS:
        return Patch(cannot_do=f"The diff is longer than {MAX_DOCUMENT_CHARS:,} characters.")
    return Patch(
        diff=diff,
        reason=edited.reason,
        tests=[bounded(one, 300) for one in _tests(edited, workspace)],
    )


def _breaks(path: str, text: str, workspace: Workspace) -> bool:
    """Whether a file had no syntax error and has one now."""
    old = workspace.get(path)
    return _errors(SourceFile(path, text.encode("utf-8", "replace"))) > (_errors(old) if old else 0)


def _errors(file: SourceFile) -> int:
    if file.language == "python":
        return 1 if file.python is None else 0
    return 1 if file.tree is not None and file.tree.root_node.has_error else 0


def _tests(edited: Edited, workspace: Workspace) -> list[str]:
    """Test files that are changed, or name a changed module."""
    stems = {path.rpartition("/")[2].partition(".")[0] for path in edited.texts}
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(stems)))})\b")
    return [
        file.path
        for file in workspace
        if _TEST_FILE.search(file.path) and (file.path in edited.texts or pattern.search(file.text))
    ][:50]


def _diff(inputs: Mapping[str, object]) -> str:
    value = inputs.get("diff")
    return value if isinstance(value, str) else ""


def _is_diff(text: str) -> bool:
    return re.search(r"^--- .*\n\+\+\+ .*\n@@ ", text, re.MULTILINE) is not None
