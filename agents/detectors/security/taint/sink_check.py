"""Checking one call against the table of sinks."""

import ast
import re
from collections.abc import Iterator

from agents.detectors.python_names import argument, is_false, is_true
from agents.detectors.security.taint.rules import Sink, python_sinks
from agents.detectors.security.taint.value import SinkKind, Trust, Value, join

_SHELLS = re.compile(r"(^|/)(sh|bash|dash|zsh|ksh|cmd|cmd\.exe|powershell|pwsh)$")
FIXED_HOST = re.compile(r"/(?![/\\\0]|$)|https?://[^/\0@]+[/?#]")
"""An address whose beginning is constant: a path of this host, or another host by name."""
_SAFE_LOADERS = ("SafeLoader", "CSafeLoader", "BaseLoader", "CBaseLoader")
_DOCUMENT_PARTS = ("json", "get_json", "body")


def reached_sinks(
    call: ast.Call,
    name: str,
    receiver: Value | None,
    arguments: list[Value],
    keywords: dict[str, Value],
    *,
    receiver_name: str = "",
) -> Iterator[tuple[Sink, Value]]:
    """The sinks of a call that a varying value reaches, with the value; trust is not judged here.

    Args:
        call: the call.
        name: dotted name of what is called, or empty.
        receiver: value of the object whose method is called, or None.
        arguments: values of the positional arguments.
        keywords: values of the keyword arguments by name.
        receiver_name: dotted name of that object, or empty.
    """
    for sink in _sinks(call, name, receiver, receiver_name):
        value = _concerned(sink, call, arguments, keywords)
        if value is None or value.is_constant or sink.kind in value.clean:
            continue
        if not _needs(sink, call, value, arguments):
            continue
        if sink.kind in (SinkKind.REDIRECT, SinkKind.URL) and FIXED_HOST.match(value.text or ""):
            continue
        if sink.looks and not _looks_like(sink, value, receiver_name):
            continue
        yield sink, value
    if (
        receiver is not None
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in python_sinks().file_methods
    ):
        is_path = receiver.type.startswith("pathlib.") or call.func.attr[:4] in ("read", "writ")
        if is_path and receiver.origins and SinkKind.PATH not in receiver.clean:
            yield Sink(SinkKind.PATH), receiver
    shell = _shell_command(name, call, arguments)
    if shell is not None:
        yield Sink(SinkKind.COMMAND, raw=Trust.PARAMETER, built=Trust.OPAQUE), shell


def _sinks(call: ast.Call, name: str, receiver: Value | None, receiver_name: str) -> Iterator[Sink]:
    sinks = python_sinks()
    if name in sinks.calls:
        yield from sinks.calls[name]
        return
    if receiver is None or not isinstance(call.func, ast.Attribute):
        return
    method = call.func.attr
    yield from sinks.methods.get(method, ())
    for entry, sink in sinks.receivers:
        if method in entry.names and (
            entry.receiver.search(receiver_name) or receiver.type.removesuffix("()") in entry.types
        ):
            yield sink


def _concerned(
    sink: Sink, call: ast.Call, arguments: list[Value], keywords: dict[str, Value]
) -> Value | None:
    """The value at the sink; the worst of several."""
    found = [keywords[key] for key in sink.keywords if key in keywords]
    for position in sink.positions:
        if position < len(arguments):
            found.append(arguments[position])
        if any(isinstance(one, ast.Starred) for one in call.args[: position + 1]):
            break
    if sink.kind is SinkKind.SQL:  # `where=["name = '…'"]`
        found = [one.element if one.elements else one for one in found]
    return join(found) if found else None


def _needs(sink: Sink, call: ast.Call, value: Value, arguments: list[Value]) -> bool:
    if sink.needs == "":
        return True
    if sink.needs == "shell":
        return is_true(argument(call, 8, "shell"))
    if sink.needs == "no-shell":  # a list with a constant program is no injection
        if is_true(argument(call, 8, "shell")):
            return False
        return value.elements is None or bool(
            value.elements and value.elements[0].trust >= Trust.USER
        )
    if sink.needs == "unsafe-yaml":
        loader = argument(call, 1, "Loader")
        name = "Loader" if loader is None else ast.unparse(loader)
        return name.endswith("Loader") and not name.endswith(_SAFE_LOADERS)
    if sink.needs == "unsafe-torch":
        return not is_true(argument(call, None, "weights_only"))
    if sink.needs == "allow-pickle":
        return is_true(argument(call, 2, "allow_pickle"))
    if sink.needs == "xml-entities":
        parser = argument(call, 1, "parser")
        return not (
            isinstance(parser, ast.Call) and is_false(argument(parser, None, "resolve_entities"))
        )
    if sink.needs == "document":
        origin = value.worst_origin()
        return origin is not None and any(part in origin.text for part in _DOCUMENT_PARTS)
    raise AssertionError(sink.needs)


def _looks_like(sink: Sink, value: Value, receiver_name: str) -> bool:
    if value.text and re.search(sink.looks, value.text):
        return True
    if sink.kind is SinkKind.SQL and python_sinks().database_names.search(receiver_name):
        return value.trust >= Trust.LOCAL or not value.built
    if sink.kind is SinkKind.LDAP or sink.kind is SinkKind.SQL:
        return False
    return value.trust >= Trust.USER and sink.kind is not SinkKind.HTML


def _shell_command(name: str, call: ast.Call, arguments: list[Value]) -> Value | None:
    """The command in `["sh", "-c", command]` passed without a shell; None if it is constant."""
    if not name.startswith(
        ("subprocess.", "asyncio.create_subprocess_exec", "os.exec", "os.spawn")
    ):
        return None
    words = arguments
    if arguments and arguments[0].elements is not None:
        words = list(arguments[0].elements)
    for position, word in enumerate(words[:-2]):
        if word.text and _SHELLS.search(word.text) and (words[position + 1].text or "").lower() in (
            "-c", "/c", "-lc", "-ec", "-command",
        ):  # fmt: skip
            command = words[position + 2]
            if command.origins and SinkKind.COMMAND not in command.clean:
                return command
    return None
