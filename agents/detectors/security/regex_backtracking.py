"""The detector `regex_backtracking`: patterns whose matching time grows exponentially with the text.

A repetition of something that itself may repeat, where the same text can be split in several ways, followed
by something that may fail. Python, JavaScript, TypeScript and Java; the engines of Go and Rust are linear.
"""

import ast
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as sre_parse  # type: ignore[import-not-found]
import warnings
from collections.abc import Iterator
from typing import Any

from agents.api.finding import Finding, Severity
from agents.detectors.audit.per_file import python_files
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.python_names import constant
from agents.detectors.security.tree_code import tree_code, tree_files
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

BACKTRACKING = Rule(
    "regex-backtracking", Severity.MEDIUM, "regular expression of exponential time", 1333
)
_MESSAGE = "A text that almost matches takes exponential time: let no repeated part match what its neighbour matches."
_FUNCTIONS = frozenset(
    ["compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"]
)
_UNBOUNDED = 16
"""Repetitions from here on count as unbounded."""
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_MAX_PATTERN = 1_000
_NESTED = re.compile(r"[+*}][^)]*\)+\s*(\?:)?[+*{]|\)[+*{]")


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for module in python_files(workspace, context, tests=False):
        for call, name in module.calls:
            base, _, method = name.rpartition(".")
            if base in ("re", "regex") and method in _FUNCTIONS and call.args:
                pattern = call.args[0]
                if isinstance(pattern, ast.Name):
                    pattern = module.constants.get(pattern.id, pattern)
                text = constant(pattern)
                if isinstance(text, str) and is_exponential(text, anchored=method == "fullmatch"):
                    yield BACKTRACKING.at(module.file, pattern.lineno, _MESSAGE, confidence=0.8)
    for file in tree_files(workspace, context, ("javascript", "typescript", "tsx", "java")):
        yield from _script(file)


def _script(file: SourceFile) -> Iterator[Finding]:
    code = tree_code(file)
    for node in code.of_type("regex"):
        pattern = code.text(node.child_by_field_name("pattern"))
        if is_exponential(pattern):
            yield BACKTRACKING.at(file, code.line(node), _MESSAGE, confidence=0.8)
    for call in code.calls:
        if call.arguments and re.search(
            r"(^|\.)RegExp$|Pattern\.compile$|\.(matches|replaceAll)$", call.name
        ):
            text = code.text(call.arguments[0])
            if text[:1] in "\"'" and is_exponential(text[1:-1].replace("\\\\", "\\")):
                yield BACKTRACKING.at(file, call.line, _MESSAGE, confidence=0.8)


def is_exponential(pattern: str, *, anchored: bool = False) -> bool:
    """Whether the pattern backtracks exponentially on some text; False for what cannot be parsed.

    Args:
        pattern: in Python's syntax or JavaScript's.
        anchored: whether the whole text must match.
    """
    if len(pattern) > _MAX_PATTERN or not _NESTED.search(pattern):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = sre_parse.parse(
                pattern.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
            )
    except (re.error, RecursionError, OverflowError, ValueError):
        return False
    return _explodes(list(parsed), may_fail=anchored)


def _explodes(items: list[Any], *, may_fail: bool) -> bool:
    """Whether a sequence holds an ambiguous repetition; `may_fail`: whether what follows it may fail."""
    for position, (operator, argument) in enumerate(items):
        fails = may_fail or any(not _nullable([one]) for one in items[position + 1 :])
        if (
            operator in _REPEATS
            and argument[1] >= _UNBOUNDED
            and fails
            and _ambiguous(list(argument[2]))
        ):
            return True
        if any(_explodes(list(inner), may_fail=fails) for inner in _parts(operator, argument)):
            return True
    return False


def _parts(operator: Any, argument: Any) -> list[Any]:
    if operator in _REPEATS:
        return [argument[2]]
    if operator is sre.SUBPATTERN:
        return [argument[3]]
    if operator is sre.BRANCH:
        return list(argument[1])
    return []


def _ambiguous(body: list[Any]) -> bool:
    """Whether a repeated body can match one text in several numbers of rounds.

    It can if there is a character that every required part matches and that one part matches once or twice.
    """
    flat = _flat(body)
    if len(flat) == 1 and flat[0][0] is sre.BRANCH:
        branches = [list(branch) for branch in flat[0][1][1]]
        common = [_common(_flat(branch)) for branch in branches]
        overlapping = any(
            one & other for index, one in enumerate(common) for other in common[index + 1 :]
        )
        return overlapping or any(_ambiguous(branch) for branch in branches)
    common_to_all = _common(flat)
    return any(
        _may_repeat(one) and bool((_matched(one) or frozenset()) & common_to_all) for one in flat
    )


def _common(flat: list[Any]) -> frozenset[str]:
    """The characters that all required parts match; those of the optional ones if none is required."""
    required = [_matched(one) for one in flat if not _nullable([one])]
    if not required:
        return frozenset().union(*(_matched(one) or frozenset() for one in flat))
    return frozenset.intersection(*(one or frozenset() for one in required))


def _may_repeat(item: Any) -> bool:
    operator, argument = item
    if operator in _REPEATS:
        return bool(argument[1] >= _UNBOUNDED or argument[0] == 0)
    return operator is sre.BRANCH and _nullable([item])


def _flat(items: list[Any]) -> list[Any]:
    """The items with groups opened."""
    found: list[Any] = []
    for operator, argument in items:
        if operator is sre.SUBPATTERN:
            found += _flat(list(argument[3]))
        else:
            found.append((operator, argument))
    return found


def _nullable(items: list[Any]) -> bool:
    for operator, argument in items:
        if operator in _REPEATS:
            if argument[0] > 0 and not _nullable(list(argument[2])):
                return False
        elif operator is sre.SUBPATTERN:
            if not _nullable(list(argument[3])):
                return False
        elif operator is sre.BRANCH:
            if not any(_nullable(list(branch)) for branch in argument[1]):
                return False
        elif (
            operator is sre.AT and argument not in (sre.AT_END, sre.AT_END_STRING)
        ) or operator in (sre.ASSERT, sre.ASSERT_NOT):
            continue
        else:
            return False
    return True


_PROBES = frozenset(map(chr, range(32, 127))) | {"\n", "\t", "é"}


def _matched(item: Any) -> frozenset[str] | None:
    """Which probe characters an item matches as a text of one; None if it only matches longer ones."""
    operator, argument = item
    if operator is sre.LITERAL:
        return frozenset([chr(argument)])
    if operator is sre.NOT_LITERAL:
        return _PROBES - {chr(argument)}
    if operator is sre.ANY:
        return _PROBES - {"\n"}
    if operator is sre.IN:
        return _in_class(argument)
    if operator in _REPEATS and argument[0] <= 1:
        inner = _flat(list(argument[2]))
        return _matched(inner[0]) if len(inner) == 1 else None
    if operator is sre.BRANCH:
        singles = [_flat(list(branch)) for branch in argument[1]]
        return frozenset().union(
            *(_matched(one[0]) or frozenset() for one in singles if len(one) == 1)
        )
    return None


def _in_class(members: list[Any]) -> frozenset[str]:
    negated = bool(members) and members[0][0] is sre.NEGATE
    found: set[str] = set()
    for operator, argument in members:
        if operator is sre.LITERAL:
            found.add(chr(argument))
        elif operator is sre.RANGE:
            low, high = argument
            found |= {one for one in _PROBES if low <= ord(one) <= high} | {chr(low), chr(high)}
        elif operator is sre.CATEGORY:
            found |= {one for one in _PROBES if _in_category(argument, one)}
    return _PROBES - found if negated else frozenset(found)


def _in_category(category: Any, character: str) -> bool:
    name = str(category).lower()
    kind = r"\d" if "digit" in name else r"\s" if "space" in name else r"\w"
    return bool(re.match(kind, character)) != ("not" in name)


REGEX_BACKTRACKING = Detector(
    "regex_backtracking",
    "Finds regular expressions that take exponential time on some texts.",
    _detect,
    (BACKTRACKING,),
)
