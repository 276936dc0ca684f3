"""Before against after: what a change broke, findings that the base did not have, and the tests after it."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from agents.api.finding import Finding, Severity, merge_findings
from agents.detectors.audit import EDGE_CASES, LOGIC, REGRESSION, SYNTAX
from agents.detectors.audit.regression import regressions
from agents.detectors.detector import DetectorContext
from agents.outputs.findings import FindingRecord
from agents.outputs.verdict import Verdict
from agents.procedures.audit.project_tests import project_tests
from agents.procedures.audit.score import score_of, score_text
from agents.procedures.audit.tests_outcome import tests_outcome
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace, open_workspace

NEW = "the findings that are new since the base"
_COMPARED = (SYNTAX, LOGIC, EDGE_CASES)
_ASIDE = "Only the tests of a project's folder are run: give `{}` as the folder, and the other one as base."
_PAIRS = (("before", "after"), ("base", "head"), ("old", "new"))


async def run(task: AgentTask, context: ProcedureContext) -> Verdict:
    """A verdict over the workspace against `task.base`, or over two folders `before/` and `after/` within it.

    A change that broke nothing that is seen in the source passes if the project's tests pass after it.
    """
    base = task.base or _base_input(task)
    if base is None:
        pair = _pair(task.workspace)
        if pair is None:
            return Verdict(
                cannot_do="There is no base state to compare with: give the tree before the change."
            )
        before, after, prefix = pair
        found = await context.in_thread(_compare, before, after)
        found = [_moved(finding, prefix) for finding in found]
        tests = task.inputs.get("tests") or {"problem": _ASIDE.format(prefix.rstrip("/"))}
    else:
        found = await context.in_thread(_compare_folder, base, task.workspace)
        tests = await project_tests(task, context)
    serious = [one for one in found if one.severity.at_least(Severity.HIGH)]
    failed, unjudged, outcome = tests_outcome(tests)
    passed = False if serious or failed else None if unjudged else True
    reasons = [score_text(found, outcome, of=NEW)]
    reasons += [f"{one.file}:{one.line} {one.message}"[:300] for one in serious[:20]]
    reasons += [text[:300] for text in (failed, str(tests.get("used") or "")) if text]
    return Verdict(
        score=score_of(found),
        score_of=NEW,
        passed=passed,
        not_judged=unjudged[:300] if passed is None else "",
        reasons=reasons,
        findings=[FindingRecord.of(finding) for finding in found[:500]],
    )


def _base_input(task: AgentTask) -> Path | None:
    given = task.inputs.get("base")
    return Path(given) if isinstance(given, str) and given else None


def _pair(workspace: Workspace) -> tuple[Workspace, Workspace, str] | None:
    """The workspaces beneath two folders whose names say which came first."""
    for first, second in _PAIRS:
        before = [file for file in workspace if file.path.startswith(f"{first}/")]
        after = [file for file in workspace if file.path.startswith(f"{second}/")]
        if before and after:
            return _within(workspace, first), _within(workspace, second), f"{second}/"
    return None


def _within(workspace: Workspace, folder: str) -> Workspace:
    return Workspace(
        workspace.root / folder,
        [
            SourceFile(file.path.removeprefix(f"{folder}/"), file.data)
            for file in workspace
            if file.path.startswith(f"{folder}/")
        ],
    )


def _moved(finding: Finding, prefix: str) -> Finding:
    return replace(finding, file=prefix + finding.file)


def _compare_folder(base: Path, workspace: Workspace) -> list[Finding]:
    return _compare(open_workspace([base]), workspace)


def _compare(base: Workspace, workspace: Workspace) -> list[Finding]:
    context = DetectorContext(base=base.root)
    found = [
        replace(finding, detector=REGRESSION.name)
        for finding in regressions(base, workspace, context)
    ]
    return merge_findings([*found, *new_findings(base, workspace)])


def new_findings(base: Workspace, workspace: Workspace) -> list[Finding]:
    """Findings of the static detectors that the base does not have, by their ids, which ignore lines."""
    context = DetectorContext()
    changed = [
        file for file in workspace if (old := base.get(file.path)) is None or old.data != file.data
    ]
    before = [one for file in changed if (one := base.get(file.path)) is not None]
    found: list[Finding] = []
    for detector in _COMPARED:
        known = Counter(one.id for one in detector.detect(Workspace(base.root, before), context))
        for finding in detector.detect(Workspace(workspace.root, changed), context):
            if known[finding.id] > 0:
                known[finding.id] -= 1
            elif finding.severity.at_least(Severity.MEDIUM):
                found.append(replace(finding, detector=detector.name))
    return found
