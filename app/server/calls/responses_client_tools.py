"""OpenAI's tools that the client runs: `local_shell`, `shell` and `apply_patch`.

The model is offered each as a function of the same name. Its call comes back as an item of the tool's own
type, and such items in the input are calls of that function, with the same arguments.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

ClientToolKind = Literal["local_shell", "shell", "apply_patch"]

_STRINGS = {"type": "array", "items": {"type": "string"}}
_MILLISECONDS = {"type": "integer", "minimum": 1}


@dataclass(frozen=True, slots=True)
class ClientTool:
    """One of the tools.

    Attributes:
        function: what the model is offered, without the name.
        id_prefix: of the ids of its items.
        members: the members of an item that has these arguments; None if they are of another form.
        arguments: the arguments that an item stands for.
        result: what the model reads of an item with the output.
    """

    function: Mapping[str, Any]
    id_prefix: str
    members: Callable[[Mapping[str, Any]], dict[str, Any] | None]
    arguments: Callable[[Mapping[str, Any]], dict[str, Any]]
    result: Callable[[Mapping[str, Any]], str]


def parsed_members(kind: ClientToolKind, arguments: str) -> dict[str, Any] | None:
    """The members of an item from the JSON text of its arguments; None for text of another form.

    A client runs what is in them, so nothing is guessed from damaged text.
    """
    try:
        parsed = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return None
    return CLIENT_TOOLS[kind].members(parsed) if isinstance(parsed, dict) else None


def empty_members(kind: ClientToolKind) -> dict[str, Any]:
    """The members of an item whose arguments are not known yet, or have no meaning."""
    if kind == "local_shell":
        return {"action": _local_action((), {})}
    if kind == "shell":
        return {"action": _shell_action((), {}), "environment": None}
    return {"operation": {"type": "update_file", "path": "", "diff": ""}}


def _commands(value: Any) -> list[str] | None:
    """A list of texts; small models give one text."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return value
    return None


def _local_action(command: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    env = given.get("env")
    return {
        "type": "exec",
        "command": list(command),
        "env": dict(env) if isinstance(env, dict) else {},
        "timeout_ms": _integer(given, "timeout_ms"),
        "user": None,
        "working_directory": _string(given, "working_directory"),
    }


def _local_members(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    given = arguments.get("command")
    # One text is a line for a shell, not a program of that name.
    command = ["bash", "-lc", given] if isinstance(given, str) else _commands(given)
    return None if command is None else {"action": _local_action(command, arguments)}


def _shell_action(commands: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "commands": list(commands),
        "timeout_ms": _integer(given, "timeout_ms"),
        "max_output_length": _integer(given, "max_output_length"),
    }


def _shell_members(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    commands = _commands(arguments.get("commands"))
    if commands is None:
        return None
    return {"action": _shell_action(commands, arguments), "environment": {"type": "local"}}


def _patch_members(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    kind, path, diff = (arguments.get(name) for name in ("type", "path", "diff"))
    if not isinstance(path, str) or not path:
        return None
    if kind == "delete_file":
        return {"operation": {"type": kind, "path": path}}
    if kind not in ("create_file", "update_file") or not isinstance(diff, str):
        return None
    return {"operation": {"type": kind, "path": path, "diff": diff}}


def _given(value: Any, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """The members of an object that say something: the others were added when the item was made."""
    if not isinstance(value, dict):
        return {}
    return {
        name: one
        for name, one in value.items()
        if one is not None and one != {} and name not in without
    }


def _local_result(item: Mapping[str, Any]) -> str:
    return _shown(item.get("output"))


def _shell_result(item: Mapping[str, Any]) -> str:
    """The outputs of the commands, each with how it ended."""
    output = item.get("output")
    if not isinstance(output, list):
        return _shown(output)
    texts = []
    for one in output:
        if not isinstance(one, dict):
            continue
        lines = [one.get("stdout"), one.get("stderr"), _ended(one.get("outcome"))]
        texts.append(
            "\n".join(line.rstrip("\n") for line in lines if isinstance(line, str) and line)
        )
    return "\n\n".join(texts)


def _ended(outcome: Any) -> str | None:
    if not isinstance(outcome, dict):
        return None
    if outcome.get("type") == "timeout":
        return "[timed out]"
    return f"[exit code {outcome.get('exit_code')}]"


def _patch_result(item: Mapping[str, Any]) -> str:
    status = "failed" if item.get("status") == "failed" else "done"
    output = item.get("output")
    return f"{status}: {output}" if isinstance(output, str) and output else status


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _integer(given: Mapping[str, Any], name: str) -> int | None:
    value = given.get(name)
    return value if type(value) is int else None


def _string(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    return value if isinstance(value, str) else None


def _object(required: Sequence[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


CLIENT_TOOLS: Mapping[ClientToolKind, ClientTool] = {
    "local_shell": ClientTool(
        {
            "description": "Runs a program on the user's machine: its name and its arguments.",
            "parameters": _object(
                ("command",),
                command=_STRINGS,
                working_directory={"type": "string"},
                timeout_ms=_MILLISECONDS,
            ),
        },
        "lsh",
        _local_members,
        lambda item: _given(item.get("action"), without=("type",)),
        _local_result,
    ),
    "shell": ClientTool(
        {
            "description": "Runs shell commands on the user's machine, one after the other.",
            "parameters": _object(
                ("commands",),
                commands=_STRINGS,
                timeout_ms=_MILLISECONDS,
                max_output_length=_MILLISECONDS,
            ),
        },
        "sh",
        _shell_members,
        lambda item: _given(item.get("action")),
        _shell_result,
    ),
    "apply_patch": ClientTool(
        {
            "description": (
                "Creates, updates or deletes a file. In `diff`, lines begin with `+` if they are new, `-` if "
                "they are removed, and a space if they stay; parts of a file that is updated begin with "
                "`@@`. A file that is created has lines with `+` only; one that is deleted has no `diff`."
            ),
            "parameters": _object(
                ("type", "path"),
                type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
                path={"type": "string"},
                diff={"type": "string"},
            ),
        },
        "apc",
        _patch_members,
        lambda item: _given(item.get("operation")),
        _patch_result,
    ),
}

CALL_ITEMS: Mapping[str, ClientToolKind] = {
    "local_shell_call": "local_shell",
    "shell_call": "shell",
    "apply_patch_call": "apply_patch",
}
"""Types of items with calls."""
OUTPUT_ITEMS: Mapping[str, ClientToolKind] = {
    f"{name}_output": kind for name, kind in CALL_ITEMS.items()
}
"""Types of items with the results of calls."""
