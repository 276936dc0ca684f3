"""`varied_tests`: the tests that run a suspect, with other values, to compare what candidates do.

A literal of a test is changed (a number, a text, an element less or more) or one of its statements
repeated. What the test asserts then holds no longer; it is not asked whether it passes, but whether two
candidates fail in the same words. Candidates that the project's tests cannot tell apart differ here if they
differ at all on such values.
"""

import ast
import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from agents.detectors.audit.python_module import FunctionNode, module_of
from agents.repair.failing_tests.operators.place import Change, Place
from agents.repair.failing_tests.suspects import functions_of, span
from agents.repair.failing_tests.trials import Trial, TrialResult
from agents.workspace.workspace import Workspace

MAX_VARIED = 64
_FILES = 6
"""Copies of a test file in which something outside of the tests is changed."""
_ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class VariedTests:
    """Changed tests.

    Attributes:
        files: texts of the test files that hold them, by path.
        tests: their node ids.
        what: the change of each, by node id, in a few words.
    """

    files: Mapping[str, str]
    tests: tuple[str, ...]
    what: Mapping[str, str]

    def trial(self, files: Mapping[str, str]) -> Trial:
        """The run of a candidate's files with them."""
        return Trial({**files, **self.files}, self.tests)


def varied_tests(tests: Collection[str], workspace: Workspace) -> VariedTests:
    """Variations of some tests, at most `MAX_VARIED`. The same tests give the same ones.

    Args:
        tests: node ids.
        workspace: the project's files.
    """
    draw = random.Random(0)  # noqa: S311 - not for secrets
    by_file: dict[str, set[str]] = {}
    for test in sorted(tests):
        path, _, rest = test.partition("::")
        by_file.setdefault(path, set()).add(rest.partition("[")[0].replace("::", "."))
    files: dict[str, str] = {}
    what: dict[str, str] = {}
    for path, names in sorted(by_file.items()):
        file = workspace.get(path)
        module = None if file is None else module_of(file)
        if file is None or module is None:
            continue
        text = file.text
        functions = [(name, one) for name, one in functions_of(module.tree) if name in names]
        changes: list[tuple[str, FunctionNode, Change]] = []
        for name, function in functions:
            place = Place(module, text, function)
            changes += [(name, function, one) for one in _changes(place)]
        draw.shuffle(changes)
        _copies_of_tests(path, text, changes[:MAX_VARIED], files, what)
        outside = [
            one
            for statement in module.tree.body
            if not isinstance(statement, ast.Import | ast.ImportFrom)
            if not any(statement is function for _, function in functions)
            for one in _changes(Place(module, text, statement))
        ]
        draw.shuffle(outside)
        for number, change in enumerate(outside[:_FILES]):
            target = _beside(path, f"around_{number}")
            files[target] = change.applied(text)
            for name in names:
                what[f"{target}::{name.replace('.', '::')}"] = f"{name} with {change.what}"
    chosen = dict(list(what.items())[: MAX_VARIED * 2])
    return VariedTests(files, tuple(chosen), chosen)


def _copies_of_tests(
    path: str,
    text: str,
    changes: Sequence[tuple[str, FunctionNode, Change]],
    files: dict[str, str],
    what: dict[str, str],
) -> None:
    """One copy of the file in which each changed test stands behind the one that it was made of."""
    target = _beside(path, "varied")
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    additions: list[tuple[int, str]] = []
    for number, (name, function, change) in enumerate(changes):
        first, last = span(function)
        begin, end = starts[first - 1], starts[last]
        edits = tuple((start - begin, stop - begin, new) for start, stop, new in change.edits)
        own = Change(edits, change.what, 0, 0).applied(text[begin:end])
        renamed = f"{function.name}_varied_{number}"
        own = re.sub(rf"\bdef {re.escape(function.name)}\b", f"def {renamed}", own, count=1)
        additions.append((end, own if own.endswith("\n") else own + "\n"))
        dotted = (name.rpartition(".")[0] + "." if "." in name else "") + renamed
        what[f"{target}::{dotted.replace('.', '::')}"] = f"{name} with {change.what}"
    if not text.endswith("\n"):
        text += "\n"
    for at, own in sorted(additions, key=lambda one: -one[0]):
        text = text[:at] + "\n" + own + text[at:]
    if additions:
        files[target] = text


def _beside(path: str, word: str) -> str:
    own = PurePosixPath(path)
    return str(own.with_name(f"test_pravaha_{own.stem}_{word}.py"))


def _changes(place: Place) -> Iterator[Change]:
    """Other values in a piece of test code."""
    skipped = set(map(id, _expectations(place)))
    for node in place.nodes:
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant):
            for new in _values(node.value):
                yield place.replace(node, repr(new), f"{new!r} for {node.value!r}"[:80], 0)
        elif isinstance(node, ast.List) and node.elts:
            source = [place.source(one) for one in node.elts]
            for texts in (source[1:], source[:-1], [*source, source[-1]], source[::-1], []):
                yield place.replace(node, f"[{', '.join(texts)}]", "another list", 0)
        elif isinstance(node, ast.Dict) and node.keys and node.keys[0] is not None:
            rest = zip(node.keys[1:], node.values[1:], strict=True)
            pairs = [f"{place.source(k)}: {place.source(v)}" for k, v in rest if k is not None]
            yield place.replace(node, f"{{{', '.join(pairs)}}}", "a key less", 0)
    for block in place.blocks:
        for statement in block:
            effect = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
            if effect or isinstance(statement, ast.Assign):
                change = place.insert_after(statement, place.source(statement), "a step twice", 0)
                if change is not None and "\n" not in place.source(statement):
                    yield change


def _expectations(place: Place) -> Iterator[ast.AST]:
    """Literals that a result is compared with: changing them changes nothing that runs."""
    for node in place.nodes:
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
            for side in [node.test.left, *node.test.comparators]:
                if not any(isinstance(one, ast.Call | ast.Name) for one in ast.walk(side)):
                    yield from ast.walk(side)


def _values(value: object) -> list[object]:
    """Other values of the same kind."""
    match value:
        case bool():
            return [not value]
        case int():
            return [
                one
                for one in dict.fromkeys([value + 1, value - 1, 2 * value + 1, 0])
                if one != value
            ]
        case float():
            return [value + 1.0, value / 2, -value]
        case str():
            found = [value[:-1], value + value[-3:], value.swapcase()] if value else ["a"]
            found += [
                value[: match.start()] + str(number) + value[match.end() :]
                for match in list(re.finditer(r"\d+", value))[:3]
                for number in (int(match[0]) + 1, max(0, int(match[0]) - 1))
            ]
            return [one for one in dict.fromkeys(found) if one != value]
    return []


def signature(result: TrialResult, tests: Sequence[str]) -> tuple[str, ...]:
    """What a candidate did with the varied tests: equal for candidates that did the same."""
    return tuple(f"{result.outcomes.get(test, 'none')} {_said(result, test)}" for test in tests)


def _said(result: TrialResult, test: str) -> str:
    """The lines of a failure that quote values, without what differs between runs."""
    return _ADDRESS.sub("0x", " ".join(result.errors(test)))
