"""Checks of a test file: its tests assert something, pass on the code and notice faults in it."""

import ast
from collections.abc import Collection, Sequence

from agents.edits import FileEdit
from agents.steps.code.tried_tests import TriedTests
from agents.width.candidate import Outcome


class HasTests:
    """The file has tests, each of which asserts something."""

    name = "asserts"
    decides = False

    async def judge(self, code: str) -> Outcome:
        """See `agents.width.check.Check`."""
        found = [
            node
            for node in ast.walk(ast.parse(code))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
        ]
        if not found:
            return Outcome(self.name, False, "It has no test function.")
        for node in found:
            if not any(isinstance(one, ast.Assert | ast.With) for one in ast.walk(node)):
                return Outcome(self.name, False, f"{node.name} asserts nothing.")
        return Outcome(self.name, True, f"{len(found)} tests assert something.", 1.0)


class NoticesFaults:
    """All its tests pass on the code, and at least one fails with each of most faults."""

    name = "faults"
    decides = True

    def __init__(
        self, tests: TriedTests, path: str, function: str, mutants: Sequence[FileEdit]
    ) -> None:
        """Begin.

        Args:
            tests: runs them.
            path: of the test file.
            function: what is tested.
            mutants: edits of its file with a fault each.
        """
        self.kept: dict[str, str] = {}
        """By a candidate's code, what is left of it without the tests that fail on the code as it is."""
        self._tests = tests
        self._path = path
        self._function = function
        self._mutants = mutants

    async def judge(self, code: str) -> Outcome:
        """See `agents.width.check.Check`."""
        more = {self._path: code}
        now = await self._tests.on((), more=more, paths=[self._path])
        if now.problem:
            return Outcome(self.name, False, now.problem)
        if now.failed and not now.passed:
            name = min(now.failed).rpartition("::")[2]
            return Outcome(self.name, False, f"{name} fails on the code as it is.")
        if not now.passed:
            return Outcome(self.name, False, "No test ran.")
        # Who is wrong, the test or the code, is not known: what is left shows what the code does today.
        failed = {name.rpartition("::")[2].partition("[")[0] for name in now.failed}
        kept = self.kept[code] = without_functions(code, failed)
        more = {self._path: kept}
        if failed:
            now = await self._tests.on((), more=more, paths=[self._path])
            if now.problem or now.failed or not now.passed:
                name = min(now.failed, default="it").rpartition("::")[2]
                said = now.problem or f"{name} fails on the code as it is."
                return Outcome(self.name, False, said)
        noticed = 0
        for mutant in self._mutants:
            then = await self._tests.on((mutant,), more=more, paths=[self._path])
            noticed += bool(then.failed or then.problem)
        total = len(self._mutants)
        share = noticed / total if total else 0.0
        if not total or noticed * 2 < total:
            said = f"It notices {noticed} of {total} faults that were put into {self._function}."
            return Outcome(self.name, False, said, share)
        said = f"It passes, and notices {noticed} of {total} faults that were put into {self._function}."
        return Outcome(self.name, True, said, share)


def without_functions(code: str, names: Collection[str]) -> str:
    """The code without some functions at its top."""
    lines = code.splitlines(keepends=True)
    for node in reversed(ast.parse(code).body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in names:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            del lines[first - 1 : node.end_lineno]
    return "".join(lines).rstrip() + "\n"
