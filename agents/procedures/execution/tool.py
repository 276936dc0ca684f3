"""`tool`: one requested tool call: `read src/x.py lines 1-20`, `grep "TODO" in src`, `run pytest -q`.

The request is matched with the tool's argument schema; the executor validates it, asks for permission and
runs it. Inputs `tool` and `arguments` name the call exactly.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.outputs.tool_result import ToolResult
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded
from agents.text.near import near_matches
from agents.tools.tool import Tool

# Words that ask for a tool, beside its own name.
_VERBS: Mapping[str, tuple[str, ...]] = {
    "read": ("show", "open", "cat", "view", "print", "display"),
    "grep": ("search", "find"),
    "glob": ("list", "ls"),
    "git": (),
    "write": ("create", "save"),
    "edit": ("replace", "change", "substitute"),
    "shell": ("run", "execute", "sh", "bash", "$"),
    "python": ("evaluate", "eval", "calculate", "compute"),
    "http_fetch": ("fetch", "download", "get"),
    "todo": (),
}
_PATHS = ("path", "file", "filename", "files", "folder", "directory", "root")
_PATTERNS = ("pattern", "query", "regex", "expression", "glob")
_BODIES = (
    "command",
    "code",
    "content",
    "text",
    "script",
    "source",
    "url",
    "operation",
    "args",
    "arguments",
    "item",
)
_FIRST = ("start", "start_line", "first", "first_line", "line", "from_line", "offset")
_LAST = ("end", "end_line", "last", "last_line", "to_line", "until")
_OLD = ("old", "old_text", "old_str", "search", "before", "find")
_NEW = ("new", "new_text", "new_str", "replace", "after", "replacement")
_RANGE = re.compile(
    r"\blines?\s+(\d{1,7})(?:\s*(?:-|–|to|until|and|\.\.)\s*(\d{1,7}))?", re.IGNORECASE
)
_REPLACEMENT = re.compile(
    r"(?:\"([^\"]*)\"|'([^']*)'|`([^`]*)`)\s+(?:by|with|to|into|->|→)\s+(?:\"([^\"]*)\"|'([^']*)'|`([^`]*)`)"
)
_QUOTED = re.compile(r"\"([^\"\n]{1,500})\"|'([^'\n]{1,500})'|`([^`\n]{1,500})`|/([^/\n]{1,500})/")
_IN = re.compile(
    r"\b(?:in|of|from|under|inside|to|into|as)\s+(?:the\s+)?(?:file|folder|directory|files)?\s*[`\"']?([\w./*-]*[\w*/])[`\"']?",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?:^|\s|[`\"'])((?:[\w.*-]+/)*[\w*-]+\.[A-Za-z]\w{0,8}|(?:[\w.*-]+/)+[\w.*-]*|\*+[\w.*/-]*)(?=$|[\s`\"',:;?])"
)
_POLITE = re.compile(
    r"^\s*(?:please|can you|could you|use the tool|use|call|the)\s+", re.IGNORECASE
)


async def run(task: AgentTask, context: ProcedureContext) -> ToolResult:
    """Find the tool and its arguments, call it, and give its output."""
    tools = context.available_tools
    name, arguments, reason = parse_request(task, tools)
    if reason:
        return ToolResult(tool=bounded(name, 80), cannot_do=bounded(reason, 300))
    path = arguments.get("path")
    if name == "write" and "read" in tools and task.workspace.get(str(path)) is not None:
        await context.tool("read", path=path)  # only a file that was read may be replaced
    output = await context.tool(name, **arguments)
    text = str(output.pop("text", ""))
    failed = bool(output.pop("failed", False))
    return ToolResult(tool=name, arguments=arguments, text=bounded(text, 60_000), failed=failed)


def parse_request(task: AgentTask, tools: Mapping[str, Tool]) -> tuple[str, dict[str, Any], str]:
    """The tool's name, its arguments, and why there is no call (empty if there is one)."""
    given = task.inputs.get("arguments")
    name = str(task.inputs.get("tool", ""))
    text = task.text.strip()
    if not name:
        name, text = _tool_name(text, tools)
    if not name:
        return "", {}, f"The task names no tool; there are: {', '.join(tools) or 'none'}."
    if name not in tools:
        near = near_matches(name, tools)
        hint = f" Did you mean {near[0]}?" if near else ""
        return name, {}, f"There is no tool {name:.60}, or this agent may not call it.{hint}"
    model = tools[name].arguments
    if isinstance(given, Mapping):
        arguments = {str(key): value for key, value in given.items()}
    else:
        arguments = _json(text) or arguments_of(text, model, task.document)
    try:
        model.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "arguments"
        return name, arguments, f"{name} needs other arguments: {where}: {first['msg']}."
    return name, arguments, ""


def _tool_name(text: str, tools: Mapping[str, Tool]) -> tuple[str, str]:
    """The tool that the first word asks for, and the rest of the text."""
    rest = text
    for _ in range(3):
        rest = _POLITE.sub("", rest)
    match = re.match(r"([\w.$]+)(?:\s*:)?\s*", rest)
    if match is None:
        return "", text
    word = match[1].lower()
    body = rest[match.end() :]
    if word in tools:
        return word, body
    for name, verbs in _VERBS.items():
        if word in verbs and name in tools:
            # `run the python code …` names the tool after the verb.
            named = re.match(r"(?:the\s+)?(\w+)\s+", body)
            if named and named[1].lower() in tools and named[1].lower() != name:
                return named[1].lower(), body[named.end() :]
            return name, body
    return (word, body) if word in _VERBS else ("", text)


def _json(text: str) -> dict[str, Any] | None:
    start = text.find("{")
    if start < 0:
        return None
    try:
        value = json.loads(text[start:])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def arguments_of(text: str, model: type[BaseModel], document: str = "") -> dict[str, Any]:
    """The arguments that a request names, for the fields that the model has."""
    fields = model.model_fields
    found: dict[str, Any] = {}

    def put(names: Iterable[str], value: Any) -> bool:
        name = next((one for one in names if one in fields and one not in found), None)
        if name is None or value in (None, ""):
            return False
        listed = str(fields[name].annotation).startswith(("list", "tuple"))
        found[name] = [value] if listed and not isinstance(value, list) else value
        return True

    rest = text.strip()
    lines = _RANGE.search(rest)
    if lines and any(name in fields for name in _FIRST):
        put(_FIRST, int(lines[1]))
        put(_LAST, int(lines[2] or lines[1]))
        rest = rest[: lines.start()] + rest[lines.end() :]
    pair = _REPLACEMENT.search(rest)
    if pair and any(name in fields for name in _OLD):
        put(_OLD, next(group for group in pair.groups()[:3] if group is not None))
        put(_NEW, next(group for group in pair.groups()[3:] if group is not None))
        rest = rest[: pair.start()] + rest[pair.end() :]
    if any(name in fields for name in _PATTERNS):
        rest = _take_pattern(rest, put)
    has_body = any(name in fields for name in _BODIES)
    only_body = has_body and not any(name in fields for name in _PATHS)
    if not only_body:
        rest = _take_path(rest, put)
    if has_body:
        put(_BODIES, document or _unquoted(rest.strip(" :\n")))
    return found


def _take_pattern(text: str, put: Any) -> str:
    match = _QUOTED.search(text)
    if match:
        put(_PATTERNS, next(group for group in match.groups() if group is not None))
        return text[: match.start()] + text[match.end() :]
    words = re.sub(r"^(?:for|all|the|files?|matching|named)\s+", "", text.strip()).split()
    if words:
        put(_PATTERNS, words[0])
        return " ".join(words[1:])
    return text


def _take_path(text: str, put: Any) -> str:
    for pattern in (_PATH, _IN):
        match = pattern.search(text)
        if match:
            put(_PATHS, match[1].strip("`\"'"))
            return text[: match.start()] + " " + text[match.end() :]
    return text


def _unquoted(text: str) -> str:
    match = re.fullmatch(r"([`\"'])(.*)\1", text, re.DOTALL)
    return match[2] if match and match[1] not in match[2] else text
