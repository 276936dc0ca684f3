"""Whether a patch is accepted: decided by tests and detectors, never by an agent's claim.

The conditions: the new test fails before the change; the diff applies and the files parse; no existing test
is deleted, skipped or weakened; the detector no longer fires and is not silenced; there is no new finding of
the same or a higher severity; the new test passes; no test that passed fails or is gone.
"""

from dataclasses import dataclass

from agents.api.errors import InvalidTask
from agents.api.finding import Finding
from agents.detectors.audit.python_module import is_test_path
from agents.detectors.audit.regression.weakened_tests import test_changes
from agents.detectors.detector import DetectorContext
from agents.outputs.patch import Patch
from agents.outputs.test_file import TestFile
from agents.procedures.audit.patch_applier import still_fires
from agents.procedures.audit.regression_guard import new_findings
from agents.repair.test_run import TestResults, run_tests
from agents.repair.work_copy import WorkCopy
from agents.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The decision about one patch.

    Attributes:
        finding: what it repairs.
        patch: the patch.
        test: the reproducing test.
        accepted: whether it stays.
        reason: why it was rejected; what proved it, if it was accepted.
    """

    finding: Finding
    patch: Patch
    test: TestFile
    accepted: bool
    reason: str


async def try_patch(
    copy: WorkCopy, finding: Finding, patch: Patch, test: TestFile, baseline: TestResults
) -> Acceptance:
    """Try a patch in the copy; it stays there if it is accepted, and is taken back otherwise.

    Args:
        copy: the copy, in the state that `baseline` is of.
        finding: what is to be repaired.
        patch: the change; its diff may not touch the reproducing test.
        test: the reproducing test.
        baseline: the outcome of all tests before the change.
    """

    def rejected(reason: str) -> Acceptance:
        return Acceptance(finding, patch, test, False, reason)

    if patch.cannot_do or not patch.diff:
        return rejected(patch.cannot_do or "The patch is empty.")
    if test.cannot_do or not test.code:
        return rejected(f"No test can show the defect: {test.cannot_do or 'there is none'}")
    before = copy.workspace()
    if before.get(test.path) is not None:
        return rejected(f"{test.path} exists already.")
    copy.restore({test.path: test.code})
    undo: dict[str, str | None] = {test.path: None}
    try:
        shown = await run_tests(copy.root, [test.path])
        if shown.problem or not shown.failed or shown.passed:
            return _undone(copy, undo, rejected("The new test does not fail before the change."))
        undo |= copy.apply(patch.diff)
        if undo[test.path] is not None:
            return _undone(copy, undo, rejected("The patch changes its own test."))
        reason = _static_refusal(before, copy.workspace(), finding)
        reason = reason or await _test_refusal(copy, test, baseline)
    except InvalidTask as error:
        reason = str(error)
    except BaseException:
        copy.restore(undo)
        raise
    if reason:
        return _undone(copy, undo, rejected(reason))
    how = "a test of its behaviour" if test.kind == "behaviour" else "a check of its source"
    return Acceptance(finding, patch, test, True, f"Shown by {how}; all tests pass.")


def _undone(copy: WorkCopy, undo: dict[str, str | None], decision: Acceptance) -> Acceptance:
    copy.restore(undo)
    return decision


def _static_refusal(before: Workspace, after: Workspace, finding: Finding) -> str:
    """Why the change is refused without running it, or empty."""
    for file in after:
        old = before.get(file.path)
        parsed = old is None or old.python is not None
        if file.language == "python" and file.python is None and parsed:
            return f"{file.path} does not parse after the change."
    weakened = list(test_changes(before, after, DetectorContext()))
    if weakened:
        return f"A test was weakened: {weakened[0].message}"
    for file in before:
        kept = after.get(file.path)
        if is_test_path(file.path) and (kept is None or kept.data != file.data):
            return f"The change touches the test {file.path}: a repair may only add one."
    changed = after.get(finding.file)
    if changed is None:
        return f"The change removes {finding.file}."
    if still_fires(finding, before, changed):
        return f"{finding.rule} is still reported."
    if _silences(before, after):
        return "The change silences a detector instead of repairing the code."
    for new in new_findings(before, after):
        if new.severity.at_least(finding.severity):
            return f"The change brings a new finding: {new.rule} at {new.file}:{new.line}."
    return ""


_SILENCERS = ("noqa", "nosec", "type: ignore", "pragma: no cover", "pylint: disable", "nosemgrep",
              "eslint-disable", "@ts-ignore", "allowlist secret")  # fmt: skip


def _silences(before: Workspace, after: Workspace) -> bool:
    """Whether comments that switch detectors off were added."""

    def count(workspace: Workspace) -> int:
        return sum(file.text.count(word) for file in workspace for word in _SILENCERS)

    return count(after) > count(before)


async def _test_refusal(copy: WorkCopy, test: TestFile, baseline: TestResults) -> str:
    """Why the change is refused by tests, or empty."""
    again = await run_tests(copy.root, [test.path])
    if again.problem or again.failed or not again.passed:
        return again.problem or "The new test still fails."
    whole = await run_tests(copy.root)
    if whole.problem:
        return whole.problem
    broken = sorted(whole.failed - baseline.failed)
    if broken:
        return f"{len(broken)} tests fail that did not, first {broken[0]}."
    missing = sorted(baseline.passed - whole.passed - whole.failed)
    return f"{len(missing)} tests no longer run, first {missing[0]}." if missing else ""
