"""What clients are shown of calls of tools: kinds, titles, places, diffs, plans."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from acp.helpers import plan_entry, text_block, tool_content, tool_diff_content, update_plan
from acp.schema import (
    AgentPlanUpdate,
    ContentToolCallContent,
    FileEditToolCallContent,
    PlanEntryStatus,
    ToolCallLocation,
    ToolKind,
)

from agents.api.errors import InvalidTask
from agents.text.unified_diff import apply_diff, parse_diff
from agents.tools.beneath import parts_of
from agents.tools.file_access import FileAccess
from app.text.safe_text import safe_text

Content = ContentToolCallContent | FileEditToolCallContent

_KINDS: Mapping[str, ToolKind] = {
    "read": "read",
    "grep": "search",
    "glob": "search",
    "rag_search": "search",
    "edit": "edit",
    "write": "edit",
    "shell": "execute",
    "python": "execute",
    "git": "execute",
    "http_fetch": "fetch",
    "todo": "think",
    "memory": "think",
}
_TODO_STATES: Mapping[str, PlanEntryStatus] = {
    "open": "pending",
    "doing": "in_progress",
    "done": "completed",
}
_TITLE_CHARS = 120
_MAX_TEXT = 20_000
_SHOWN_FIRST = ("path", "command", "pattern", "query", "url", "code", "arguments")


def kind_of(tool: str) -> ToolKind:
    """The kind of a tool's calls."""
    return _KINDS.get(tool, "other")


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of a call; empty if they are no JSON object."""
    try:
        value = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def title_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """A call in a line: the tool and what it is about."""
    about = next((arguments[name] for name in _SHOWN_FIRST if arguments.get(name)), "")
    words = about if isinstance(about, str) else orjson.dumps(about, default=str).decode()
    line = " ".join(safe_text(f"{tool} {words}").split())
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"


def locations_of(arguments: Mapping[str, Any], folder: Path) -> list[ToolCallLocation]:
    """The places that a call is about, so that an editor can follow."""
    path = arguments.get("path")
    if not isinstance(path, str):
        return []
    try:
        parts = parts_of(path)
    except InvalidTask:
        return []
    line = arguments.get("start_line")
    known = line if isinstance(line, int) and line > 0 else None
    return [ToolCallLocation(path=str(folder.joinpath(*parts)), line=known)]


def text_content(text: str) -> list[Content]:
    """A result as clients show it."""
    clean = safe_text(text)
    shown = clean if len(clean) <= _MAX_TEXT else f"{clean[:_MAX_TEXT]}\n…"
    return [tool_content(text_block(shown))] if shown.strip() else []


def edit_content(
    tool: str, arguments: Mapping[str, Any], folder: Path, files: FileAccess
) -> list[Content]:
    """The diff that a call of `edit` or `write` will make; reads the file, which may block."""
    path = arguments.get("path")
    if tool not in ("edit", "write") or not isinstance(path, str):
        return []
    try:
        parts = parts_of(path)
        before: str | None = files.read(folder, "/".join(parts)).decode("utf-8", "replace")
    except InvalidTask:
        parts, before = path.split("/"), None
    if tool == "write":
        after = arguments.get("content")
    else:
        old, after = arguments.get("old"), arguments.get("new")
        if not isinstance(old, str) or not isinstance(after, str):
            return []
        if before is not None and before.count(old) == 1:
            after = before.replace(old, after)
        else:  # the call will fail; what it asks for is shown
            before = old
    if not isinstance(after, str):
        return []
    return [tool_diff_content(str(folder.joinpath(*parts)), after, before)]


def diff_content(diff: str, folder: Path, files: FileAccess) -> list[Content]:
    """A unified diff over files of a folder; empty if it does not fit them. Reads them, which may block."""
    return [
        tool_diff_content(str(folder / path), after or "", before)
        for path, (before, after) in changes_of(diff, folder, files).items()
    ]


def changes_of(
    diff: str, folder: Path, files: FileAccess
) -> dict[str, tuple[str | None, str | None]]:
    """The texts before and after by path; empty if the diff is none, or does not fit the files."""
    try:
        texts: dict[str, str] = {}
        for file in parse_diff(diff):
            if file.old_path is not None:
                texts[file.old_path] = files.read(folder, file.old_path).decode("utf-8")
        after = apply_diff(diff, texts)
    except (InvalidTask, UnicodeDecodeError):
        return {}
    return {path: (texts.get(path), text) for path, text in after.items()}


def todo_plan(arguments: Mapping[str, Any]) -> AgentPlanUpdate | None:
    """The plan of a call of `todo`; None if it changes none."""
    items = arguments.get("items")
    if not isinstance(items, list):
        return None
    entries = [
        plan_entry(
            str(one.get("text", "")), status=_TODO_STATES.get(str(one.get("state")), "pending")
        )
        for one in items
        if isinstance(one, Mapping)
    ]
    return update_plan(entries)


def steps_plan(steps: Iterable[Any]) -> AgentPlanUpdate | None:
    """The plan of an agent's steps, none of which has begun; None if there are none."""
    entries = [
        plan_entry(words)
        for one in steps
        if isinstance(one, Mapping) and (words := _step_words(one))
    ]
    return update_plan(entries) if entries else None


def _step_words(step: Mapping[str, Any]) -> str:
    agent, task = str(step.get("agent", "")), str(step.get("input") or step.get("task") or "")
    return ": ".join(word for word in (agent, task) if word)


def nodes_plan(states: Mapping[str, str], done: Sequence[str]) -> AgentPlanUpdate:
    """The plan of a pipeline's nodes by name.

    Args:
        states: of each node.
        done: the states that nothing follows.
    """
    return update_plan(
        plan_entry(
            name
            if state in ("ok", "pending", "running")
            else f"{name} ({state.replace('_', ' ')})",
            status="completed"
            if state in done
            else "in_progress"
            if state == "running"
            else "pending",
        )
        for name, state in states.items()
    )
