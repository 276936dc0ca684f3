"""The probable cause of a failure, by the kind of its error, its message and the failing line."""

import ast
import re
from collections.abc import Callable

from agents.procedures.execution.traceback_parser import Trace
from agents.text.near import near_matches
from agents.workspace.source_file import SourceFile

Cause = tuple[str, float]
"""What probably happened, and the confidence in it."""


def probable_cause(trace: Trace, line: str, file: SourceFile | None) -> Cause:
    """The cause of a failure.

    Args:
        trace: the failure.
        line: the failing line of code, or empty.
        file: the file that holds it, or None.
    """
    name = trace.error.rpartition(".")[2]
    explain = _CAUSES.get(name) or _CAUSES.get(trace.error)
    if explain is not None:
        return explain(trace.message, line, file)
    return _by_message(trace.message, line)


def _key(message: str, line: str, file: SourceFile | None) -> Cause:
    key = message.strip()
    keys = re.findall(r"['\"]([\w -]{1,60})['\"]\s*:", file.text) if file else []
    near = [
        one
        for one in near_matches(key.strip("'\""), dict.fromkeys(keys))
        if one != key.strip("'\"")
    ]
    hint = f" The file has the key {near[0]!r}." if near else ""
    return f"The mapping has no key {key}.{hint} Use `.get`, or check that the key is there.", 0.85


def _attribute(message: str, line: str, file: SourceFile | None) -> Cause:
    match = re.match(r"'(\w+)' object has no attribute '(\w+)'", message)
    if match and match[1] == "NoneType":
        holder = re.search(rf"([\w.\])]+(?:\([^()]*\))?)\s*\.\s*{match[2]}\b", line)
        what = f"`{holder[1]}`" if holder else "The value"
        return f"{what} is None where `.{match[2]}` is used: what returned it found nothing.", 0.85
    match = match or re.match(r"module '([\w.]+)' has no attribute '(\w+)'", message)
    if match:
        defined = re.findall(r"def (\w+)|self\.(\w+)\s*=", file.text) if file else []
        names = {name for pair in defined for name in pair if name} - {match[2]}
        near = near_matches(match[2], names)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        return f"`{match[1]}` has no attribute `{match[2]}`.{hint}", 0.8
    return f"{message}.", 0.6


def _index(message: str, line: str, file: SourceFile | None) -> Cause:
    match = re.search(r"([\w.]+)\s*\[([^\]\[]{1,60})\]", line)
    if match:
        return (
            f"`{match[1]}` has no element `{match[2]}`: it is shorter than expected, or empty.",
            0.8,
        )
    if re.search(r"\.pop\(", line):
        return "`pop` is called on an empty list.", 0.8
    return "A sequence is shorter than its index.", 0.6


def _zero(message: str, line: str, file: SourceFile | None) -> Cause:
    match = re.search(r"(?://|/|%)=?\s*(\(?[\w.]+(?:\([^()]*\)|\[[^\]]*\])?)", line)
    divisor = f"`{match[1].lstrip('(')}`" if match else "The divisor"
    return f"{divisor} is zero here: check it before dividing.", 0.85


def _name(message: str, line: str, file: SourceFile | None) -> Cause:
    match = re.search(r"name '(\w+)' is not defined|variable '(\w+)'", message)
    name = next((one for one in match.groups() if one), "") if match else ""
    if "referenced before assignment" in message or "not associated with a value" in message:
        return (
            f"`{name}` is read before it is assigned on this path; a branch does not set it.",
            0.8,
        )
    known = _defined_names(file) - {name}
    near = near_matches(name, known) if name else []
    hint = f" Did you mean `{near[0]}`?" if near else " It is misspelt, or its import is missing."
    return f"`{name}` is not defined.{hint}", 0.85


def _defined_names(file: SourceFile | None) -> set[str]:
    if file is None or file.python is None:
        return set()
    found: set[str] = set()
    for node in ast.walk(file.python):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return found


def _import(message: str, line: str, file: SourceFile | None) -> Cause:
    match = re.search(r"No module named '([\w.]+)'", message)
    if match:
        return f"The module `{match[1]}` is not installed, or not on the path.", 0.85
    match = re.search(
        r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'", message
    )
    if match and "partially initialized" in message:
        return (
            f"`{match[2]}` imports in a circle: it was not finished when `{match[1]}` was asked for.",
            0.85,
        )
    if match:
        return f"`{match[2]}` does not define `{match[1]}`.", 0.8
    return f"An import failed: {message}.", 0.6


def _type(message: str, line: str, file: SourceFile | None) -> Cause:
    match = re.search(r"unsupported operand type\(s\) for (\S+): '(\w+)' and '(\w+)'", message)
    if match:
        none = "; one side is None" if "NoneType" in match.group(2, 3) else ""
        return f"`{match[1]}` is used between {match[2]} and {match[3]}{none}.", 0.8
    match = re.search(r"(\w+)\(\) (?:missing \d+ required|takes|got an unexpected)", message)
    if match:
        return f"The call does not fit the signature of `{match[1]}`: {message}.", 0.8
    if "'NoneType' object is not" in message:
        return "A value is None where a sequence, number or function is expected.", 0.8
    match = re.search(
        r"Cannot read propert(?:y|ies) (?:'(\w+)' )?of (undefined|null)(?: \(reading '(\w+)'\))?",
        message,
    )
    if match:
        member = match[1] or match[3] or ""
        holder = re.search(rf"([\w.\])]+)\??\.{member}\b", line) if member else None
        what = f"`{holder[1]}`" if holder else "The value"
        return f"{what} is {match[2]} where `.{member}` is read.", 0.85
    match = re.search(r"([\w.]+) is not a function", message)
    if match:
        return f"`{match[1]}` is no function: it is misspelt, or not exported.", 0.75
    return f"A value has another type than the code expects: {message}.", 0.6


def _value(message: str, line: str, file: SourceFile | None) -> Cause:
    match = re.search(
        r"invalid literal for int\(\)[^:]*: (.{1,80})|could not convert string to float: (.{1,80})",
        message,
    )
    if match:
        return f"The text {match[1] or match[2]} is no number: check it before converting.", 0.85
    if "unpack" in message:
        return f"The sequence has another length than the names on the left: {message}.", 0.8
    return f"A value is not allowed here: {message}.", 0.6


def _file(message: str, line: str, file: SourceFile | None) -> Cause:
    match = re.search(r"'([^']{1,200})'|open '?([^',\n]{1,200})", message)
    path = f" `{match[1] or match[2]}`" if match else ""
    return f"The file{path} does not exist: a relative path depends on the working folder.", 0.8


def _assertion(message: str, line: str, file: SourceFile | None) -> Cause:
    claim = re.match(r"\s*assert\s+(.{1,200})", line)
    shown = f"`{claim[1].strip()}` does not hold" if claim else "An assertion does not hold"
    return f"{shown}{': ' + message if message else ''}.", 0.75


def _recursion(message: str, line: str, file: SourceFile | None) -> Cause:
    return "The function calls itself without reaching its base case.", 0.8


def _null_pointer(message: str, line: str, file: SourceFile | None) -> Cause:
    match = re.search(r'because "([^"]+)" is null', message)
    what = f"`{match[1]}`" if match else "A reference on this line"
    return f"{what} is null.", 0.85 if match else 0.7


def _by_message(message: str, line: str) -> Cause:
    lower = message.lower()
    if "nil pointer" in lower or "nil map" in lower:
        holder = re.search(r"([\w.]+)(?:\.\w+|\[)", line)
        return f"`{holder[1]}` is nil here." if holder else "A nil value is used.", 0.8
    match = re.search(
        r"index out of (?:range|bounds)[^\d]*(\d+)\D+(\d+)|len is (\d+) but the index is (\d+)",
        lower,
    )
    if match:
        index, length = (match[4], match[3]) if match[3] else (match[1], match[2])
        if "length" in lower and match[1] and lower.index(match[1]) < lower.index("length"):
            index, length = match[1], match[2]
        return f"The index {index} is outside of a sequence of length {length}.", 0.85
    if "divide by zero" in lower or "/ by zero" in lower:
        return _zero(message, line, None)
    match = re.search(
        r"called `(option::unwrap\(\)|result::unwrap\(\))` on an? `(none|err)`", lower
    )
    if match:
        return f"`unwrap` is called on `{match[2].capitalize()}`: handle that case.", 0.85
    if "deadlock" in lower:
        return "All goroutines wait for each other.", 0.8
    shown = message or "The error has no message"
    return f"{shown}.", 0.4


_CAUSES: dict[str, Callable[[str, str, SourceFile | None], Cause]] = {
    "KeyError": _key,
    "AttributeError": _attribute,
    "IndexError": _index,
    "ZeroDivisionError": _zero,
    "NameError": _name,
    "UnboundLocalError": _name,
    "ModuleNotFoundError": _import,
    "ImportError": _import,
    "TypeError": _type,
    "ValueError": _value,
    "FileNotFoundError": _file,
    "AssertionError": _assertion,
    "RecursionError": _recursion,
    "StackOverflowError": _recursion,
    "NullPointerException": _null_pointer,
}
