"""Checks of a change: it fits the files, leaves no unknown names, and keeps the examples of docstrings."""

import ast
import asyncio
import functools
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from agents.api.finding import Severity
from agents.detectors.audit.types import TYPES
from agents.detectors.detector import DetectorContext
from agents.edits import FileEdit
from agents.steps.code.change import Change
from agents.steps.code.shown_files import is_test_path
from agents.width.candidate import Outcome
from agents.width.checks.examples import Examples
from agents.width.examples import Example, examples_in
from agents.width.probe_run import Setting, run_calls
from agents.width.signature import Definition, definition_in, parameters_of
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_RUFF_S = 20.0
_RULES = "F821,F822,F823"
"""Undefined names, undefined exports, and locals that are used before they are assigned."""
ChangeOf = Callable[[str], Change]


@dataclass(frozen=True, slots=True)
class Fits:
    """The code has one place in the files and changes them. Costs a millisecond.

    Attributes:
        change_of: what code changes.
        tests_too: whether it may change tests.
        signatures: definitions whose parameters stay as they are.
    """

    change_of: ChangeOf
    tests_too: bool = False
    signatures: Collection[str] = ()
    name: str = "fits"
    decides: bool = False

    async def judge(self, code: str) -> Outcome:
        """See `agents.width.check.Check`."""
        change = self.change_of(code)
        if change.problem:
            return Outcome(self.name, False, change.problem)
        tests = [path for path in change.paths if is_test_path(path)]
        if tests and not self.tests_too:
            return Outcome(self.name, False, f"It changes the test {tests[0]}.")
        for edit in change.edits:
            problem = _other_signature(edit, self.signatures)
            if problem:
                return Outcome(self.name, False, problem)
        listed = ", ".join(change.names or change.paths)
        return Outcome(self.name, True, f"It changes {listed:.200}.", 1.0)


def _other_signature(edit: FileEdit, kept: Collection[str]) -> str:
    """Why a definition cannot be called as before; empty if all can."""
    before, after = _tree(edit.before), _tree(edit.after)
    if before is None or after is None:
        return ""
    for name in kept:
        old, new = definition_in(before, name), definition_in(after, name)
        if old is None or isinstance(old, ast.ClassDef):
            continue
        if new is None or isinstance(new, ast.ClassDef):
            return f"{name} is gone."
        given, made = parameters_of(old), parameters_of(new)
        if made[: len(given)] != given:
            return f"{name} must keep its parameters ({', '.join(given)})."
    return ""


def _tree(data: bytes | None) -> ast.Module | None:
    try:
        return None if data is None else ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The changed files use no more undefined names than before (ruff). Costs 20 ms.

    Attributes:
        change_of: what code changes.
    """

    change_of: ChangeOf
    name: str = "names"
    decides: bool = False

    async def judge(self, code: str) -> Outcome:
        """See `agents.width.check.Check`."""
        for edit in self.change_of(code).edits:
            if not edit.path.endswith(".py"):
                continue
            new = await _new_in(edit, _complaints)
            if new:
                return Outcome(self.name, False, f"{new} in {edit.path}.")
        return Outcome(self.name, True, "All names are known.", 1.0)


async def _new_in(edit: FileEdit, found_in: Callable[[bytes], Counter[str]]) -> str:
    """The first of what is found in a file after the change and was not found before; empty if nothing is."""
    before = await asyncio.to_thread(found_in, edit.before or b"")
    after = await asyncio.to_thread(found_in, edit.after)
    return next((after - before).elements(), "")


def _complaints(data: bytes) -> Counter[str]:
    """What ruff says of a file, without places; nothing if it cannot be run."""
    words = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", _RULES]
    words += ["--output-format", "json", "--stdin-filename", "input.py", "-"]
    try:
        done = subprocess.run(words, input=data, capture_output=True, timeout=_RUFF_S, check=False)
        found = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return Counter()
    return Counter(str(one["message"]) for one in found if one.get("code") is not None)


@dataclass(frozen=True, slots=True)
class DeclaredTypes:
    """Where types are declared, the changed files have no more type errors than before.

    mypy finds them where it is installed, which costs a second or two; else simple rules do. Files without
    annotations cost nothing.

    Attributes:
        change_of: what code changes.
    """

    change_of: ChangeOf
    name: str = "types"
    decides: bool = False

    async def judge(self, code: str) -> Outcome:
        """See `agents.width.check.Check`."""
        for edit in self.change_of(code).edits:
            if not edit.path.endswith(".py") or not _is_annotated(edit.after):
                continue
            new = await _new_in(edit, functools.partial(_type_errors, edit.path))
            if new:
                return Outcome(self.name, False, f"In {edit.path}: {new}")
        return Outcome(self.name, True, "The declared types hold.", 1.0)


def _is_annotated(data: bytes) -> bool:
    tree = _tree(data)
    return tree is not None and any(
        isinstance(node, ast.AnnAssign)
        or (isinstance(node, ast.arg) and node.annotation is not None)
        or (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None)
        for node in ast.walk(tree)
    )


@functools.lru_cache(32)
def _type_errors(path: str, data: bytes) -> Counter[str]:
    """What the detector of types says of a file by itself, from medium severity on, without places."""
    alone = Workspace(Path("/nonexistent"), [SourceFile(path, data)])
    found = TYPES.detect(alone, DetectorContext())
    return Counter(one.message for one in found if one.severity.at_least(Severity.MEDIUM))


@dataclass(frozen=True, slots=True)
class ChangeExamples:
    """The examples of the task, and those of docstrings that were there before, hold.

    Attributes:
        change_of: what code changes.
        task: the user's words.
        root: the project, for imports.
    """

    change_of: ChangeOf
    task: str
    root: Path | None = None
    name: str = "examples"

    @property
    def decides(self) -> bool:
        """Only examples of the task show that a change does what was asked."""
        return _any_examples(self.task)

    async def judge(self, code: str) -> Outcome:
        """See `agents.width.check.Check`."""
        tried, problem = 0, ""
        for edit in self.change_of(code).edits:
            tree = _tree(edit.after)
            if tree is None or is_test_path(edit.path):
                continue
            for name in edit.names or tuple(_functions(tree)):
                found = self._examples(name, edit, tree)
                if not found:
                    continue
                outcome = await Examples(self._setting(edit), found).judge(edit.after.decode())
                if not outcome.passed:
                    problem = await self._problem(edit)
                    if problem:
                        # This interpreter lacks what the file imports: the tests have another one.
                        continue
                    return Outcome(self.name, False, outcome.detail, outcome.score)
                tried += len(found)
        if not tried:
            said = "There are no examples of what changes."
            if problem:
                said = f"The examples cannot be run: {problem}."
            return Outcome(self.name, not self.decides, said, 1.0)
        return Outcome(self.name, True, f"{tried} of {tried} examples hold.", 1.0)

    async def _problem(self, edit: FileEdit) -> str:
        """Why the file can be loaded neither before the change nor after it; empty if it can."""
        if edit.before is None:
            return ""
        texts = [one.decode("utf-8", "replace") for one in (edit.before, edit.after)]
        before, after = await run_calls(self._setting(edit), texts, [])
        return after.problem if before.problem == after.problem else ""

    def _examples(self, name: str, edit: FileEdit, tree: ast.Module) -> list[Example]:
        """Those of a definition: methods have none that can be called without their object."""
        node = definition_in(tree, name)
        if node is None:
            return []
        parameters = () if isinstance(node, ast.ClassDef) else parameters_of(node)
        short = name.rpartition(".")[2]
        found = [] if "." in name else examples_in(self.task, short, parameters)
        before = None if edit.before is None else _tree(edit.before)
        old = None if before is None else definition_in(before, name)
        text = _docstring(old)
        if text and text == _docstring(node):  # a docstring that the change rewrites is no witness
            found += [
                one for one in examples_in(text, short, parameters) if not _contradicts(one, found)
            ]
        return found

    def _setting(self, edit: FileEdit) -> Setting:
        return setting_of(edit.path, self.root)


def setting_of(
    path: str, root: Path | None, module_text: Callable[[str], str] = lambda code: code
) -> Setting:
    """Where texts of a project's file run: under its module's name, beside the other modules."""
    module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    folders = () if root is None else (root, root / "src")
    parts = module.split(".")
    if parts[0] == "src":
        module = ".".join(parts[1:])
    return Setting(module_text, module=module or "candidate", folders=folders)


def _any_examples(task: str) -> bool:
    """Whether a task has an example of any function."""
    names = dict.fromkeys(re.findall(r"\b([^\W\d]\w*)\(", task))
    return any(examples_in(task, name) for name in names)


def _functions(tree: ast.Module) -> list[str]:
    return [
        one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _docstring(node: Definition | None) -> str:
    return "" if node is None else ast.get_docstring(node, clean=False) or ""


def _contradicts(one: Example, others: list[Example]) -> bool:
    """Whether the task gives another value for the same call: it describes the change."""
    return any(other.call.expression == one.call.expression for other in others)
