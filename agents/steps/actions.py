"""`possible_actions`: the tools of a step with the argument values that exist now.

Arguments that name a file have the workspace's files and those of the last observation as values, arguments
that name a line the lines of that file. Tools that write may name new files, so theirs stay free text. An
argument whose schema has a `format` is no file, whatever its name.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from agents.api.errors import InvalidTask
from agents.steps.bounded_schema import Bounds, bounded_schema
from agents.steps.repeats import Repeats
from agents.steps.step_grammar import Action, Argument
from agents.tools.tool import Effect, Tool
from agents.workspace.workspace import Workspace

MAX_VALUES = 200
"""Values offered for an argument, those of the last observation first."""
MAX_LINE_RANGES = 32
"""Files whose own line numbers are offered; with more, line numbers are only positive."""
_FILE = re.compile(r"(^|_)(path|file)$")
_LINE = re.compile(r"(^|_)(line|start|end|first|last)(_|$)")


def possible_actions(
    tools: Iterable[Tool],
    workspace: Workspace,
    observed: Mapping[str, tuple[str, ...]],
    repeats: Repeats,
    bounds: Bounds,
) -> list[Action]:
    """The actions of the next step.

    Args:
        tools: what the run may call now.
        workspace: the files that exist.
        observed: values by argument name that earlier observations made known, the latest first.
        repeats: the calls so far; a tool whose last call was a repeat is left out once.
        bounds: of free text and lists in arguments.
    """
    suspended = repeats.take_suspended()
    actions = []
    for tool in tools:
        if tool.name in suspended:
            continue
        arguments = _arguments(tool, workspace, observed, bounds)
        if arguments is not None:
            used = repeats.used(tool.name)
            actions.append(Action(tool.name, arguments, used, _lines(arguments, workspace)))
    return actions


def _arguments(
    tool: Tool, workspace: Workspace, observed: Mapping[str, tuple[str, ...]], bounds: Bounds
) -> tuple[Argument, ...] | None:
    """The arguments, required ones first; None if a required one has no form that a grammar can hold."""
    schema = tool.arguments.model_json_schema()
    required = schema.get("required", ())
    try:
        members: dict[str, dict[str, Any]] = bounded_schema(schema, bounds).get("properties", {})
    except InvalidTask:
        return None
    if any(name not in members for name in required):
        return None
    ordered = [*required, *(name for name in members if name not in required)]
    return tuple(
        Argument(
            name,
            _without_null(members[name]),
            required=name in required,
            values=_values(
                tool,
                name,
                members[name],
                workspace,
                observed,
                names_file=_FILE.search(name) is not None
                and "format" not in schema["properties"][name],
            ),
            is_line=_without_null(members[name]).get("type") == "integer"
            and _LINE.search(name) is not None,
        )
        for name in ordered
    )


def _values(
    tool: Tool,
    name: str,
    schema: Mapping[str, Any],
    workspace: Workspace,
    observed: Mapping[str, tuple[str, ...]],
    *,
    names_file: bool,
) -> tuple[str, ...] | None:
    if _without_null(schema).get("type") != "string" or (_FILE.search(name) and not names_file):
        return None
    known = observed.get(name, ())
    if names_file and not tool.effects <= {Effect.READ}:
        return None
    if names_file:
        files = [one for one in known if workspace.get(one) is not None]
        files += [file.path for file in workspace]
        return tuple(dict.fromkeys(files))[:MAX_VALUES]
    return tuple(dict.fromkeys(known))[:MAX_VALUES] or None


def _lines(arguments: tuple[Argument, ...], workspace: Workspace) -> dict[str, int]:
    """Lines by file, if the first argument names one of a few files and another one its lines."""
    if not arguments or not any(one.is_line for one in arguments):
        return {}
    files = [workspace.get(value) for value in arguments[0].values or ()]
    found = [file for file in files if file is not None]
    if not found or len(found) > MAX_LINE_RANGES:
        return {}
    return {file.path: len(file.lines) for file in found}


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of an optional value that is not null: an omitted argument says the same."""
    parts = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    return parts[0] if len(parts) == 1 else schema
