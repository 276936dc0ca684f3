"""`Gate`: whether a patch is accepted. Tests and detectors decide, never an agent's claim.

A patch is refused if `change_check` refuses it, if the new test does not fail before it and pass after it, or
if a test that passed fails or no longer runs. What is left is accepted only if it is proved:

    known rewrite (`fixers`)   by a test of behaviour, or by a source check if the project's tests run the
                               changed lines
    any other patch            by a test of behaviour, and equal results on ordinary values (`comparison`)

What is not proved is shown to a person with the reason; without a person it is rejected.
Each decision costs two to five runs of pytest, two of them over all tests at most.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from agents.api.errors import InvalidTask
from agents.api.finding import Finding
from agents.detectors.detector import Detector
from agents.outputs.patch import Patch
from agents.outputs.test_file import TestFile
from agents.procedures.audit.patch_applier import patch_of
from agents.project_tests.results import TestResults
from agents.project_tests.run import run_tests
from agents.repair.change_check import Findings, refusal_of
from agents.repair.comparison import comparison_test
from agents.repair.execution_probe import probed_text
from agents.repair.protected_files import is_protected
from agents.repair.work_copy import WorkCopy
from agents.workspace.workspace import Workspace

Proof = Literal["tests", "approval", ""]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The decision about one patch.

    Attributes:
        finding: what it repairs.
        patch: the patch.
        test: the reproducing test; `cannot_do` if there is none.
        accepted: whether it stays.
        reason: why it was rejected; what proved it, if it was accepted.
        proof: what it was accepted by; empty if it was not.
    """

    finding: Finding
    patch: Patch
    test: TestFile
    accepted: bool
    reason: str
    proof: Proof = ""


Approve = Callable[[Finding, Patch, str], Awaitable[bool]]
"""Asks a person about a patch that tests do not prove, with the reason; whether it may stay."""


async def nobody(finding: Finding, patch: Patch, doubt: str) -> bool:
    """Approves nothing."""
    return False


class Gate:
    """Tries patches in one copy. Use from one event loop, one patch at a time.

    Attributes:
        baseline: outcome of all tests in the copy's present state.
    """

    def __init__(
        self,
        copy: WorkCopy,
        baseline: TestResults,
        detectors: Sequence[Detector],
        *,
        approve: Approve = nobody,
    ) -> None:
        """Begin.

        Args:
            copy: where patches are tried.
            baseline: outcome of all its tests.
            detectors: the auditors' detectors.
            approve: asks about patches that tests do not prove.
        """
        self.baseline = baseline
        self._command = baseline.command
        self._copy = copy
        self._found = Findings(detectors)
        self._approve = approve

    async def decide(self, finding: Finding, patch: Patch, tests: Sequence[TestFile]) -> Acceptance:
        """Try a patch; it stays in the copy with its test if it is accepted, and is taken back otherwise.

        Args:
            finding: what is to be repaired.
            patch: the change.
            tests: tests that may show the finding, the best first; the first that fails is used.
        """
        trial = _Trial(finding, patch, self._copy.workspace())
        if patch.cannot_do or not patch.diff:
            return trial.rejected(patch.cannot_do or "The patch is empty.")
        if is_protected(finding.file):
            return trial.rejected(
                f"{finding.file} is a test or configures tools: a repair does not change it."
            )
        undo: dict[str, str | None] = {}
        kept = False
        try:
            decision = await self._decide(trial, tests, undo)
            kept = decision.accepted
            return decision
        except InvalidTask as error:
            return trial.rejected(str(error))
        finally:
            if not kept:
                self._copy.restore(undo)

    def refusal(self, finding: Finding, before: Workspace, after: Workspace) -> str:
        """Why a change that is no known rewrite is refused before any test runs; empty if it may be tried.

        Raises:
            InvalidTask: a detector failed, so that nothing is known.
        """
        return refusal_of(finding, before, after, self._found, known=False)

    async def decide_failing(
        self, finding: Finding, patch: Patch, tests: frozenset[str]
    ) -> Acceptance:
        """Try a patch for tests that fail now; it stays in the copy if it is accepted, else it is taken back.

        A failing test is the test of behaviour, and asks for other results than before. "The same results"
        then means the outcome of every test that passed. Which other results are right no test says: the
        caller compares all candidates that got this far on varied tests before it proposes one
        (`agents.repair.failing_tests`).

        Args:
            finding: the function that is changed, with all its lines.
            patch: the change.
            tests: names of the tests that have to pass with it.
        """
        trial = _Trial(finding, patch, self._copy.workspace())
        trial.test = TestFile(
            kind="behaviour", reason=f"The project's own test {min(tests)} fails."[:300]
        )
        if patch.cannot_do or not patch.diff:
            return trial.rejected(patch.cannot_do or "The patch is empty.")
        undo: dict[str, str | None] = {}
        kept = False
        try:
            undo |= self._copy.apply(patch.diff)
            after = self._copy.workspace()
            refusal = await asyncio.to_thread(self.refusal, finding, trial.before, after)
            if refusal:
                return trial.rejected(refusal)
            whole = await self._run()
            refusal = _broken(whole, self.baseline)
            if refusal:
                return trial.rejected(refusal)
            if not tests <= whole.passed:
                return trial.rejected(f"{min(tests - whole.passed)} still fails.")
            kept = True
            mended = len(self.baseline.failed - whole.failed)
            self.baseline = whole
            now = "1 failing test passes" if mended == 1 else f"{mended} failing tests pass"
            left = f"; {len(whole.failed)} still fail" if whole.failed else ""
            return trial.accepted(f"{now} now, and all that passed still do{left}.", "tests")
        except InvalidTask as error:
            return trial.rejected(str(error))
        finally:
            if not kept:
                self._copy.restore(undo)

    async def _decide(
        self, trial: "_Trial", tests: Sequence[TestFile], undo: dict[str, str | None]
    ) -> Acceptance:
        finding, patch, before = trial.finding, trial.patch, trial.before
        undo |= self._copy.apply(patch.diff)
        known = patch_of(finding, before).diff == patch.diff
        after = self._copy.workspace()
        refusal = await asyncio.to_thread(
            refusal_of, finding, before, after, self._found, known=known
        )
        if refusal:
            return trial.rejected(refusal)
        self._copy.restore(undo)
        trial.test = await self._failing(tests, before)
        self._copy.apply(patch.diff)
        if trial.test.code:
            undo[trial.test.path] = None
            self._copy.restore({trial.test.path: trial.test.code})
        whole = await self._run()
        refusal = _broken(whole, self.baseline) or await self._still_failing(trial.test, whole)
        if refusal:
            return trial.rejected(refusal)
        doubt = await self._doubt(trial, known=known)
        if doubt and not await self._approve(finding, patch, doubt):
            return trial.rejected(f"{doubt} Nobody approved it.")
        self.baseline = whole
        if doubt:
            return trial.accepted(f"Approved by a person. {doubt}", "approval")
        how = (
            "a test of its behaviour" if trial.test.kind == "behaviour" else "a check of its source"
        )
        return trial.accepted(f"Shown by {how}; all tests pass.", "tests")

    async def _failing(self, tests: Sequence[TestFile], before: Workspace) -> TestFile:
        """The first test that fails in the present state; one with `cannot_do` if none does."""
        for test in tests:
            if before.get(test.path) is not None:
                continue
            shown = await self._try(test)
            if not shown.problem and shown.failed and not shown.passed:
                return test
        reason = "No test can show it without knowing what is meant."
        if tests:
            reason = "None of the generated tests fails before the change."
        return TestFile(cannot_do=reason)

    async def _still_failing(self, test: TestFile, whole: TestResults) -> str:
        """Why the new test does not show the repair, or empty.

        It runs again if the run of all tests did not collect it.
        """
        if not test.code:
            return ""
        name = f"::{PurePosixPath(test.path).stem}"
        if not any(one.endswith(name) for one in whole.passed | whole.failed):
            whole = await self._run([test.path])
        passed = any(one.endswith(name) for one in whole.passed - whole.failed)
        return "" if passed else whole.problem or "The new test does not pass after the change."

    async def _try(self, test: TestFile, extra: tuple[str, str] | None = None) -> TestResults:
        """Run one test that does not stay, beside another file that does not."""
        files = {test.path: test.code} | ({extra[0]: extra[1]} if extra else {})
        self._copy.restore(files)
        try:
            return await self._run([test.path])
        finally:
            self._copy.restore(dict.fromkeys(files))

    async def _run(self, paths: Sequence[str] = ()) -> TestResults:
        try:
            return await run_tests(
                self._copy.root, paths, origin=self._copy.original, command=self._command
            )
        finally:
            self._copy.undo_side_effects()

    async def _doubt(self, trial: "_Trial", *, known: bool) -> str:
        """Why tests do not prove the patch; empty if they do.

        Raises:
            InvalidTask: the patch changes results that it must not change.
        """
        test = trial.test
        if not test.code:
            return f"No test shows {trial.finding.rule} here: {test.cannot_do}"
        if known and test.kind == "behaviour":
            return ""
        if known:
            return "" if await self._runs_change(trial) else (
                "Only a check of the source shows it, and no test of the project runs the changed lines."
            )  # fmt: skip
        if test.kind != "behaviour":
            return "Only a check of the source shows it, and the change is no known rewrite."
        return await self._uncompared(trial)

    async def _uncompared(self, trial: "_Trial") -> str:
        """Why the results before and after could not be compared; empty if they are equal."""
        path = PurePosixPath(trial.finding.file)
        beside = str(path.with_name(f"pravaha_before_{path.stem}.py"))
        test = comparison_test(trial.finding, trial.before, beside)
        original = trial.before.get(trial.finding.file)
        if test.cannot_do or original is None or trial.before.get(beside) is not None:
            return f"The results before and after cannot be compared: {test.cannot_do}"
        shown = await self._try(test, (beside, original.data.decode("utf-8")))
        if shown.failed:
            raise InvalidTask("The change alters results that have nothing to do with the finding.")
        if shown.problem or not shown.passed:
            return "The results before and after cannot be compared: the function cannot be called alone."
        return ""

    async def _runs_change(self, trial: "_Trial") -> bool:
        """Whether a test of the project fails if the changed lines raise."""
        path = trial.finding.file
        before, now = trial.before.get(path), self._copy.workspace().get(path)
        if before is None or now is None or now.language != "python":
            return False
        text = probed_text(before.text, now.text)
        if text is None:
            return False
        self._copy.restore({path: text})
        try:
            probed = await self._run()
        finally:
            self._copy.restore({path: now.data.decode("utf-8")})
        return bool(probed.problem or self.baseline.passed - probed.passed)


@dataclass(slots=True)
class _Trial:
    """A patch that is being tried."""

    finding: Finding
    patch: Patch
    before: Workspace
    test: TestFile = field(default_factory=lambda: TestFile(cannot_do="No test was tried."))

    def rejected(self, reason: str) -> Acceptance:
        """It is taken back."""
        return Acceptance(self.finding, self.patch, self.test, False, reason)

    def accepted(self, reason: str, proof: Proof) -> Acceptance:
        """It stays."""
        return Acceptance(self.finding, self.patch, self.test, True, reason, proof)


def _broken(whole: TestResults, baseline: TestResults) -> str:
    """Why the outcome of all tests refuses a change, or empty."""
    if whole.problem:
        return whole.problem
    broken = sorted(whole.failed - baseline.failed)
    if broken:
        return f"{len(broken)} tests fail that did not, first {broken[0]}."
    missing = sorted(baseline.passed - whole.passed)
    return f"{len(missing)} tests no longer run, first {missing[0]}." if missing else ""
