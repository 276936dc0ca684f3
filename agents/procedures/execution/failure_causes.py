"""The probable cause of a failure: of the first rule that fits the error's kind, its message and its line."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from agents.procedures.execution.traceback_parser import Trace
from agents.text.near import near_matches
from agents.workspace.source_file import SourceFile

Cause = tuple[str, float]
"""What probably happened, and the confidence in it."""

_INT = r"invalid literal for int\(\)[^:]*: (.{1,80})|could not convert string to float: (.{1,80})"
_BOUNDS = r"index out of (?:range|bounds)[^\d]*(\d+)\D+(\d+)"
_DIVISOR = r"(?://|/|%)=?\s*\(?([\w.]+(?:\([^()]*\)|\[[^\]]*\])?)"


@dataclass(frozen=True, slots=True)
class _Rule:
    """One cause.

    Attributes:
        errors: kinds of errors by their last name, with blanks; empty for all that no other rule names.
        cause: the sentence; `{0}`, `{1}` … are the groups that matched, first those of the message, then
            those of the line, `{message}` is the message, `{near}` a hint at a similar name of the file.
        confidence: that it is right.
        message: searched in the message.
        line: searched in the failing line; `{0}` is the first group of the message.
        otherwise: the sentence if the line does not fit; empty goes on with the next rule.
    """

    errors: str
    cause: str
    confidence: float
    message: str = ""
    line: str = ""
    otherwise: str = ""


_RULES = (
    _Rule("KeyError",
          "The mapping has no key {message}.{near} Use `.get`, or check that the key is there.", 0.85),
    _Rule("AttributeError", "`{1}` is None where `.{0}` is used: what returned it found nothing.", 0.85,
          r"'NoneType' object has no attribute '(\w+)'", r"([\w.\])]+(?:\([^()]*\))?)\s*\.\s*{0}\b",
          "The value is None where `.{0}` is used: what returned it found nothing."),
    _Rule("AttributeError", "`{0}` has no attribute `{1}`.{near}", 0.8,
          r"(?:^'|module ')([\w.]+)'(?: object)? has no attribute '(\w+)'"),
    _Rule("IndexError", "`{0}` has no element `{1}`: it is shorter than expected, or empty.", 0.8, "",
          r"([\w.]+)\s*\[([^\]\[]{1,60})\]"),
    _Rule("IndexError", "`pop` is called on an empty list.", 0.8, "", r"\.pop\("),
    _Rule("IndexError", "A sequence is shorter than its index.", 0.6),
    _Rule("ZeroDivisionError", "`{0}` is zero here: check it before dividing.", 0.85, "", _DIVISOR,
          "The divisor is zero here: check it before dividing."),
    _Rule("NameError UnboundLocalError",
          "`{0}` is read before it is assigned on this path; a branch does not set it.", 0.8,
          r"variable '(\w+)' (?:referenced before assignment|.*not associated with a value)"),
    _Rule("NameError UnboundLocalError", "`{0}` is not defined.{near}", 0.85, r"name '(\w+)' is not defined"),
    _Rule("ModuleNotFoundError ImportError", "The module `{0}` is not installed, or not on the path.", 0.85,
          r"No module named '([\w.]+)'"),
    _Rule("ModuleNotFoundError ImportError",
          "`{1}` imports in a circle: it was not finished when `{0}` was asked for.", 0.85,
          r"cannot import name '(\w+)' from partially initialized module '([\w.]+)'"),
    _Rule("ModuleNotFoundError ImportError", "`{1}` does not define `{0}`.", 0.8,
          r"cannot import name '(\w+)' from '([\w.]+)'"),
    _Rule("ModuleNotFoundError ImportError", "An import failed: {message}.", 0.6),
    _Rule("TypeError", "`{0}` is used between {1} and {2}; one side is None.", 0.8,
          r"unsupported operand type\(s\) for (\S+): '(NoneType|\w+(?=' and 'NoneType))' and '(\w+)'"),
    _Rule("TypeError", "`{0}` is used between {1} and {2}.", 0.8,
          r"unsupported operand type\(s\) for (\S+): '(\w+)' and '(\w+)'"),
    _Rule("TypeError", "The call does not fit the signature of `{0}`: {message}.", 0.8,
          r"(\w+)\(\) (?:missing \d+ required|takes|got an unexpected)"),
    _Rule("TypeError", "A value is None where a sequence, number or function is expected.", 0.8,
          "'NoneType' object is not"),
    _Rule("TypeError", "`{2}` is {0} where `.{1}` is read.", 0.85,
          r"of (undefined|null) \(reading '(\w+)'\)", r"([\w.\])]+)\??\.{1}\b",
          "The value is {0} where `.{1}` is read."),
    _Rule("TypeError", "`{2}` is {1} where `.{0}` is read.", 0.85,
          r"Cannot read propert(?:y|ies) '(\w+)' of (undefined|null)", r"([\w.\])]+)\??\.{0}\b",
          "The value is {1} where `.{0}` is read."),
    _Rule("TypeError",
          "`{0}` is no function: it is misspelt, or not exported.", 0.75, r"([\w.]+) is not a function"),
    _Rule("TypeError", "A value has another type than the code expects: {message}.", 0.6),
    _Rule("ValueError", "The text {0} is no number: check it before converting.", 0.85, _INT),
    _Rule("ValueError",
          "The sequence has another length than the names on the left: {message}.", 0.8, "unpack"),
    _Rule("ValueError", "A value is not allowed here: {message}.", 0.6),
    _Rule("FileNotFoundError",
          "The file `{0}` does not exist: a relative path depends on the working folder.", 0.8,
          r"'([^']{1,200})'|open '?([^',\n]{1,200})"),
    _Rule("FileNotFoundError",
          "The file does not exist: a relative path depends on the working folder.", 0.8),
    _Rule("AssertionError", "`{0}` does not hold{colon_message}.", 0.75, "", r"^\s*assert\s+(.{1,200}?)\s*$",
          "An assertion does not hold{colon_message}."),
    _Rule("RecursionError StackOverflowError",
          "The function calls itself without reaching its base case.", 0.8),
    _Rule("NullPointerException", "`{0}` is null.", 0.85, 'because "([^"]+)" is null'),
    _Rule("NullPointerException", "A reference on this line is null.", 0.7),
    _Rule("",
          "`{0}` is nil here.", 0.8, "(?i:nil pointer|nil map)", r"([\w.]+)(?:\.\w+|\[)",
          "A nil value is used."),
    _Rule("", "The index {1} is outside of a sequence of length {0}.", 0.85,
          r"(?i)len is (\d+) but the index is (\d+)"),
    _Rule("", "The index {0} is outside of a sequence of length {1}.", 0.85, rf"(?i){_BOUNDS}"),
    _Rule("", "`{0}` is zero here: check it before dividing.", 0.85, "(?i)divide by zero|/ by zero", _DIVISOR,
          "The divisor is zero here: check it before dividing."),
    _Rule("",
          "`unwrap` is called on `None`: handle that case.", 0.85,
          r"(?i)called `Option::unwrap\(\)` on a `none`"),
    _Rule("",
          "`unwrap` is called on `Err`: handle that case.", 0.85,
          r"(?i)called `Result::unwrap\(\)` on an `err`"),
    _Rule("", "All goroutines wait for each other.", 0.8, "(?i)deadlock"),
)  # fmt: skip


def probable_cause(trace: Trace, line: str, file: SourceFile | None) -> Cause:
    """The cause of a failure.

    Args:
        trace: the failure.
        line: the failing line of code, or empty.
        file: the file that holds it, or None.
    """
    name = trace.error.rpartition(".")[2]
    own = [rule for rule in _RULES if name in rule.errors.split()]
    for rule in own or [rule for rule in _RULES if not rule.errors]:
        sentence = _applied(rule, trace.message, line, file)
        if sentence:
            return sentence, rule.confidence
    return f"{trace.message or 'The error has no message'}.", 0.6 if own else 0.4


def _applied(rule: _Rule, message: str, line: str, file: SourceFile | None) -> str:
    """The rule's sentence; empty if it does not fit."""
    said = re.search(rule.message, message)
    if said is None:
        return ""
    groups = [group for group in said.groups() if group is not None]
    pattern = rule.line
    for number, group in enumerate(groups):
        pattern = pattern.replace(f"{{{number}}}", re.escape(group))
    seen = re.search(pattern, line)
    return (rule.cause if seen else rule.otherwise).format(
        *groups,
        *(seen.groups() if seen else ()),
        message=message.strip(),
        colon_message=f": {message}" if message else "",
        near=_near(rule.errors, groups, message, file) if "{near}" in rule.cause else "",
    )


def _near(errors: str, groups: list[str], message: str, file: SourceFile | None) -> str:
    """A hint at a name of the file that is similar to the missing one."""
    known: Iterable[str]
    if errors == "KeyError":
        wanted = message.strip().strip("'\"")
        known = re.findall(r"['\"]([\w -]{1,60})['\"]\s*:", file.text) if file else []
        near = near_matches(wanted, {one: None for one in known if one != wanted})
        return f" The file has the key {near[0]!r}." if near else ""
    if errors == "AttributeError":
        wanted = groups[1]
        defined = re.findall(r"def (\w+)|self\.(\w+)\s*=", file.text) if file else []
        known, otherwise = (one for pair in defined for one in pair if one), ""
    else:
        wanted = groups[0]
        known, otherwise = _defined_names(file), " It is misspelt, or its import is missing."
    near = near_matches(wanted, set(known) - {wanted})
    return f" Did you mean `{near[0]}`?" if near else otherwise


def _defined_names(file: SourceFile | None) -> Iterable[str]:
    for node in ast.walk(file.python) if file is not None and file.python is not None else ():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
