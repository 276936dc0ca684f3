"""Tests that were deleted, skipped or weakened between two states of a tree."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.api.finding import Finding, Severity
from agents.detectors.audit.python_module import is_test_path, shape
from agents.detectors.detector import DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

TEST_DELETED = Rule("test-deleted", Severity.HIGH, "test removed")
TEST_SKIPPED = Rule("test-skipped", Severity.HIGH, "test skipped or expected to fail")
ASSERT_REMOVED = Rule("assert-removed", Severity.HIGH, "assertion removed from a test")
ASSERT_WEAKENED = Rule("assert-weakened", Severity.HIGH, "assertion that holds more easily")
TOLERANCE_WIDENED = Rule("tolerance-widened", Severity.HIGH, "tolerance of a comparison widened")
RULES = (TEST_DELETED, TEST_SKIPPED, ASSERT_REMOVED, ASSERT_WEAKENED, TOLERANCE_WIDENED)

_SKIPS = re.compile(r"\b(skip|skipif|xfail|skipTest|skipIf|skipUnless|expectedFailure|importorskip)\b")
_TRIVIAL = frozenset(["True", "1", "not False", "1 == 1", "True is True"])
_TOLERANCES = frozenset(["abs", "rel", "abs_tol", "rel_tol", "delta", "atol", "rtol"])
_SCRIPT_TEST = re.compile(r"\b(?:it|test)(\.skip|\.only|\.todo)?\(\s*(['\"`])(.+?)\2")


@dataclass(slots=True)
class TestShape:
    """What a test asserts, and how it may be skipped."""

    __test__ = False

    line: int
    asserts: list[str] = field(default_factory=list)
    trivial: list[int] = field(default_factory=list)
    raises: list[str] = field(default_factory=list)
    tolerances: list[float] = field(default_factory=list)
    skips: int = 0


def test_changes(
    base: Workspace, workspace: Workspace, context: DetectorContext
) -> Iterator[Finding]:
    """Findings about the tests of `base` that are missing or weaker in `workspace`."""
    for old in base:
        context.check_cancelled()
        if not is_test_path(old.path):
            continue
        new = workspace.get(old.path)
        if old.language == "python" and old.python is not None:
            yield from _python(old, new, workspace)
        elif old.language in ("javascript", "typescript", "tsx"):
            yield from _script(old, new)


def tests_of(file: SourceFile) -> dict[str, TestShape]:
    """The test functions of a Python file by `Class.name`."""
    found: dict[str, TestShape] = {}
    module_skips = len(_SKIPS.findall(_pytestmark(file)))
    for node in file.python.body if file.python else ():
        methods = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        inherited = _skips(node) if isinstance(node, ast.ClassDef) else 0
        for method in methods:
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name.startswith("test"):
                test = _shape(method)
                test.skips += inherited + module_skips
                found[prefix + method.name] = test
    return found


def _pytestmark(file: SourceFile) -> str:
    return "\n".join(line for line in file.lines if line.startswith("pytestmark"))


def _skips(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return sum(bool(_SKIPS.search(shape(one))) for one in node.decorator_list)


def _shape(function: ast.FunctionDef | ast.AsyncFunctionDef) -> TestShape:
    test = TestShape(function.lineno, skips=_skips(function))
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            text = shape(node.test)
            if text in _TRIVIAL:
                test.trivial.append(node.lineno)
            else:
                test.asserts.append(text)
        elif isinstance(node, ast.Call):
            name = shape(node.func).rsplit(".", 1)[-1]
            if name.startswith("assert") and name not in ("assert_never",):
                test.asserts.append(shape(node))
            elif name == "raises":
                test.raises.append(shape(node.args[0]) if node.args else "")
            elif name in ("skip", "xfail", "skipTest"):
                test.skips += 1
            for keyword in node.keywords:
                if keyword.arg in _TOLERANCES and isinstance(keyword.value, ast.Constant):
                    if isinstance(keyword.value.value, int | float):
                        test.tolerances.append(float(keyword.value.value))
        elif isinstance(node, ast.Return) and node.value is None and function.body[0] is node:
            test.skips += 1
    return test


def _python(old: SourceFile, new: SourceFile | None, workspace: Workspace) -> Iterator[Finding]:
    before = tests_of(old)
    if new is None:
        moved = {name for file in workspace.of("python") if is_test_path(file.path) for name in tests_of(file)}
        gone = [name for name in before if name not in moved]
        if gone:
            yield TEST_DELETED.at(
                old, 0, f"The file with {len(gone)} tests was deleted.", evidence=old.path
            )
        return
    after = tests_of(new)
    elsewhere: set[str] | None = None
    for name, test in before.items():
        now = after.get(name)
        if now is None:
            if elsewhere is None:
                elsewhere = {
                    one for file in workspace.of("python") if file.path != new.path and is_test_path(file.path)
                    for one in tests_of(file)
                }  # fmt: skip
            if name not in elsewhere:
                yield TEST_DELETED.at(new, 0, f"The test {name:.80} was removed.", evidence=f"def {name}")
            continue
        yield from _weaker(new, name, test, now)


def _weaker(file: SourceFile, name: str, old: TestShape, new: TestShape) -> Iterator[Finding]:
    if new.skips > old.skips:
        yield TEST_SKIPPED.at(file, new.line, f"The test {name:.80} is now skipped or expected to fail.")
    for line in new.trivial[len(old.trivial) :]:
        yield ASSERT_WEAKENED.at(file, line, f"This assertion of {name:.80} always holds.")
    lost = [text for text in old.asserts if text not in new.asserts]
    gained = [text for text in new.asserts if text not in old.asserts]
    if len(new.asserts) < len(old.asserts) and not new.trivial:
        yield ASSERT_REMOVED.at(
            file, new.line, f"{name:.80} asserted {len(old.asserts)} facts and asserts {len(new.asserts)}: "
            f"{lost[0] if lost else ''!s:.120} is gone."
        )  # fmt: skip
    for was, now in zip(lost, gained, strict=False):
        if _is_weaker(was, now):
            yield ASSERT_WEAKENED.at(
                file, _line_of(file, new.line, now), f"{was:.100} became {now:.100}, which holds more easily."
            )
    if len(old.tolerances) == len(new.tolerances):
        for first, second in zip(old.tolerances, new.tolerances, strict=True):
            if second > first:
                yield TOLERANCE_WIDENED.at(
                    file, new.line, f"A tolerance of {name:.80} grew from {first:g} to {second:g}."
                )
    if len(new.tolerances) > len(old.tolerances) and any("approx" in text for text in gained):
        if lost:
            yield TOLERANCE_WIDENED.at(file, new.line, f"{name:.80} now compares approximately.")
    broader = {"Exception", "BaseException"}
    if set(new.raises) & broader and not set(old.raises) & broader and old.raises:
        yield ASSERT_WEAKENED.at(file, new.line, f"{name:.80} now accepts any exception.")
    if len(new.raises) < len(old.raises) and len(new.asserts) <= len(old.asserts):
        yield ASSERT_REMOVED.at(file, new.line, f"{name:.80} no longer expects {old.raises[0]:.80}.")


def _is_weaker(was: str, now: str) -> bool:
    """An equality that became membership, inequality, truth or an identity with None."""
    if "==" in was and "==" not in now:
        return bool(re.search(r" (in|>=|<=|>|<|!=) |is not None|isinstance", now)) or " " not in now
    if re.search(r"assertEqual|assertRaises", was) and re.search(r"assertTrue|assertIn\b|assertIsNotNone", now):
        return True
    return now == f"{was} or True" or now.endswith(" or True")


def _line_of(file: SourceFile, start: int, text: str) -> int:
    """The line of an assertion by its text, at or after `start`."""
    squeezed = re.sub(r"\s|['\"]", "", text)
    for number in range(start, min(start + 400, len(file.lines)) + 1):
        if squeezed and squeezed in re.sub(r"\s|['\"]", "", file.lines[number - 1]):
            return number
    return start


def _script(old: SourceFile, new: SourceFile | None) -> Iterator[Finding]:
    before = {match[3]: match[1] for match in _SCRIPT_TEST.finditer(old.text)}
    if not before:
        return
    if new is None:
        yield TEST_DELETED.at(old, 0, f"The file with {len(before)} tests was deleted.", evidence=old.path)
        return
    after = {match[3]: (match[1], match.start()) for match in _SCRIPT_TEST.finditer(new.text)}
    for name, mark in before.items():
        now = after.get(name)
        if now is None:
            yield TEST_DELETED.at(new, 0, f"The test {name:.80} was removed.", evidence=name[:200])
        elif now[0] in (".skip", ".todo") and mark not in (".skip", ".todo"):
            line = new.text.count("\n", 0, now[1]) + 1
            yield TEST_SKIPPED.at(new, line, f"The test {name:.80} is now skipped.")
    removed = old.text.count("expect(") - new.text.count("expect(")
    if removed > 0 and set(before) <= set(after):
        yield ASSERT_REMOVED.at(new, 0, f"{removed} expectations were removed.", evidence=new.path)
