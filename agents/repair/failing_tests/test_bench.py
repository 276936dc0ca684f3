"""`TestBench`: a project's copy with the tests that ran in it, in which candidates are tried."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import monotonic

from agents.api.errors import InvalidTask
from agents.project_tests.results import TestResults
from agents.repair.failing_tests.candidates import PatchCandidate
from agents.repair.failing_tests.suspects import Suspect
from agents.repair.failing_tests.test_python import TestPython
from agents.repair.failing_tests.trials import LATE, Trial, TrialResult, run_trials
from agents.repair.failing_tests.varied_tests import VariedTests, signature, varied_tests
from agents.repair.work_copy import WorkCopy
from agents.text.unified_diff import make_diff
from agents.workspace.workspace import Workspace

TEST_S = 10.0
"""Seconds of one test while candidates are tried, at least; more where the slowest test took longer."""
SPECTRUM_S = 300.0


@dataclass(frozen=True, slots=True)
class Drop:
    """Why a candidate is out.

    Attributes:
        check: `the failing test`, `all tests` or another check's name.
        detail: one sentence.
        late: whether there was no time to run it.
    """

    check: str
    detail: str
    late: bool = False


class TestBench:
    """Tries candidates in one state of a copy. Use from one event loop, one call at a time.

    Attributes:
        workspace: the copy's files.
        spectrum: outcomes, failure texts and lines of all tests.
    """

    __test__ = False  # pytest must not collect it

    def __init__(
        self,
        copy: WorkCopy,
        workspace: Workspace,
        spectrum: TrialResult,
        python: TestPython,
        seconds: float,
    ) -> None:
        """Use `open`."""
        self.workspace = workspace
        self.spectrum = spectrum
        self._copy = copy
        self._python = python
        self._seconds = seconds

    @classmethod
    async def open(cls, copy: WorkCopy, python: TestPython, baseline: TestResults) -> "TestBench":
        """Run all tests once and record which lines each runs.

        Installed plugins of pytest are left out if the outcomes are the same without them.

        Raises:
            InvalidTask: the tests cannot be run this way.
        """
        workspace = await asyncio.to_thread(copy.workspace)
        problem = ""
        for plugins in (False, True):
            chosen = replace(python, plugins=plugins)
            began = monotonic()
            found = await _spectrum(copy, chosen)
            seconds = monotonic() - began
            same = {reported_name(one) for one in found.failed} == baseline.failed
            if not found.problem and same:
                return cls(copy, workspace, found, chosen, seconds)
            problem = found.problem or "other tests fail than in a run of their own"
        raise InvalidTask(f"The failing tests were not looked at: {problem}.")

    def varied(self, suspects: Sequence[Suspect]) -> VariedTests:
        """Varied tests that run one of the suspects, those that fail now first."""
        tests = [
            test
            for test, files in self.spectrum.lines.items()
            if any(
                set(files.get(one.path, ())) & set(range(one.first, one.last + 1))
                for one in suspects
            )
        ]
        return varied_tests(tests, self.workspace)

    async def failing(
        self, candidates: Sequence[PatchCandidate], test: str, *, total_s: float
    ) -> list[Drop | None]:
        """Run the failing test with each candidate."""
        trials = [Trial({one.suspect.path: one.text}, (test,)) for one in candidates]
        results = await self._run(trials, total_s)
        return [
            None
            if test in one.passed
            else Drop("the failing test", _why(one, test), one.problem == LATE)
            for one in results
        ]

    async def whole(
        self, candidates: Sequence[PatchCandidate], *, total_s: float
    ) -> list[Drop | None]:
        """Run all tests with each candidate, and enter how many that failed pass."""
        trials = [Trial({one.suspect.path: one.text}) for one in candidates]
        results = await self._run(trials, total_s)
        for one, result in zip(candidates, results, strict=True):
            one.mended = len(self.spectrum.failed & result.passed)
        return [self._broken(one) for one in results]

    async def sign(
        self, candidates: Sequence[PatchCandidate], varied: VariedTests, *, total_s: float
    ) -> None:
        """Enter what candidates did with the varied tests."""
        trials = [varied.trial({one.suspect.path: one.text}) for one in candidates]
        for one, result in zip(candidates, await self._run(trials, total_s), strict=True):
            one.signature = signature(result, varied.tests)

    def candidate(self, suspect: Suspect, text: str, what: str, tier: int | None) -> PatchCandidate:
        """A candidate made of a changed file's text, with the file's own line ends and byte-order mark."""
        file = self.workspace.get(suspect.path)
        if file is None:
            raise InvalidTask(f"There is no file {suspect.path}.")
        stored = file.data.decode("utf-8")
        if "\r\n" in stored:
            text = text.replace("\n", "\r\n")
        if stored.startswith("\ufeff"):
            text = "\ufeff" + text
        return PatchCandidate(suspect, text, make_diff(suspect.path, stored, text), what, tier)

    async def _run(self, trials: Sequence[Trial], total_s: float) -> list[TrialResult]:
        if not trials:
            return []
        trial_s = max(2 * TEST_S, 4 * self._seconds)
        try:
            return await run_trials(
                self._copy.root,
                trials,
                self._python,
                test_s=max(TEST_S, self._seconds) if self._seconds > TEST_S else TEST_S / 2,
                trial_s=trial_s,
                total_s=total_s,
            )
        finally:
            self._copy.undo_side_effects()

    def _broken(self, result: TrialResult) -> Drop | None:
        if result.problem:
            return Drop("all tests", f"All tests: {result.problem}.")
        broken = sorted(result.failed - self.spectrum.failed)
        missing = sorted(self.spectrum.passed - result.passed - result.failed)
        if broken:
            return Drop("all tests", f"{len(broken)} tests fail that did not, first {broken[0]}.")
        if missing:
            return Drop("all tests", f"{len(missing)} tests no longer run, first {missing[0]}.")
        return None


async def _spectrum(copy: WorkCopy, python: TestPython) -> TrialResult:
    try:
        found = await run_trials(
            copy.root,
            [Trial(lines=True)],
            python,
            test_s=SPECTRUM_S,
            trial_s=SPECTRUM_S,
            total_s=SPECTRUM_S + 10,
        )
    finally:
        copy.undo_side_effects()
    return found[0]


def reported_name(node: str) -> str:
    """The name that a JUnit report gives a test, from its node id."""
    path, *rest = node.split("::")
    module = path.removesuffix(".py").replace("/", ".")
    if not rest:
        return f"::{module}"
    # A parameter may hold `::`.
    head, bracket, tail = "::".join(rest).partition("[")
    names = head.split("::")
    return f"{'.'.join([module, *names[:-1]])}::{names[-1]}{bracket}{tail}"


def _why(result: TrialResult, test: str) -> str:
    """What the failing test says now, in a line."""
    if result.problem:
        return f"The failing test: {result.problem}."
    said = next(iter(result.errors(test)), "it does not pass")
    return f"It still fails: {said}"[:300]
