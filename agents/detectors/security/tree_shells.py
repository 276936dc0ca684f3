"""Commands that reach a shell through an argument list, in the languages that tree-sitter parses."""

import re
from collections.abc import Iterator

from agents.detectors.rule_file import JAVASCRIPT
from agents.detectors.security.taint.value import SinkKind, Trust, Value, opaque
from agents.detectors.security.tree_code import TreeCall, TreeCode

_SHELL = re.compile(
    r"^[\"'`]?(/usr)?(/bin/)?(ba|da|z|k)?sh[\"'`]?$|^[\"']cmd(\.exe)?[\"']$|powershell"
)
_Hit = tuple[SinkKind, int, int, Value, str]


def shell_calls(code: TreeCode, call: TreeCall) -> Iterator[_Hit]:
    """`exec.Command("sh", "-c", built)`, `spawn("sh", ["-c", built])`, `Command::new("sh").arg("-c").arg(built)`."""
    for value, name in _commands(code, call):
        yield SinkKind.COMMAND, call.line, call.end_line, value, name


def _commands(code: TreeCode, call: TreeCall) -> Iterator[tuple[Value, str]]:
    language = code.file.language
    if language == "go" and re.search(r"exec\.Command(Context)?$", call.name):
        yield from _go(code, call)
    elif language in JAVASCRIPT and re.search(
        r"(^|\.)(spawn|spawnSync|execFile|execFileSync)$", call.name
    ):
        yield from _javascript(code, call)
    elif language == "rust" and call.name.endswith((".arg", ".args")):
        text = " ".join(code.text(one) for one in call.arguments)
        if _starts_shell(call.name) or _starts_shell(f"{call.name}({text}"):
            values = [code.value(one) for one in call.arguments]
            yield from ((one, "Command::new") for one in values if not one.is_constant)
    elif language == "java" and call.name == "ProcessBuilder":
        values = [code.value(one) for one in call.arguments]
        if (
            len(values) >= 3
            and _SHELL.search(code.text(call.arguments[0]))
            and not values[2].is_constant
        ):
            yield values[2], call.name
    elif language == "java" and call.name.endswith(".exec") and call.arguments:
        text = code.text(call.arguments[0])
        if re.search(r"\{\s*\"(/bin/)?(ba)?sh\"\s*,\s*\"-c\"", text) and "+" in text:
            yield Value(opaque("").origins, built=True), call.name


def _go(code: TreeCode, call: TreeCall) -> Iterator[tuple[Value, str]]:
    arguments = call.arguments[1:] if call.name.endswith("Context") else call.arguments
    if len(arguments) >= 3 and _SHELL.search(code.text(arguments[0])):
        value = code.value(arguments[2])
        if not value.is_constant:
            yield value, call.name
    elif arguments and code.value(arguments[0]).trust is Trust.USER:
        yield code.value(arguments[0]), call.name


def _javascript(code: TreeCode, call: TreeCall) -> Iterator[tuple[Value, str]]:
    text = " ".join(code.text(one) for one in call.arguments)
    first = call.arguments[0] if call.arguments else None
    if re.search(r"shell\s*:\s*(true|['\"])", text) or (
        first is not None and _SHELL.search(code.text(first))
    ):
        varying = [
            value
            for value in (code.value(one) for one in call.arguments[:2])
            if not value.is_constant
        ]
        if varying:
            yield max(varying, key=lambda value: value.trust), call.name
    elif first is not None and code.value(first).trust is Trust.USER:
        yield code.value(first), call.name


def _starts_shell(name: str) -> bool:
    return bool(re.search(r'Command::new\("(/bin/)?(ba|da|z)?sh"\)', name)) and '"-c"' in name
