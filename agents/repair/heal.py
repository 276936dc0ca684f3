"""`heal`: audit a folder, repair what tests can prove, audit again; at most three rounds.

Works in a throw-away copy. The bars are 90, 80 and 70 points of 100 (`agents.procedures.audit.score`); an
open critical finding fails at any bar. Repairs come from deterministic fixers; a model may propose more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.api.errors import Cancelled, InvalidTask
from agents.api.events import RunEventType
from agents.api.finding import Finding, Severity, merge_findings
from agents.detectors.detector import Detector, DetectorContext
from agents.outputs.patch import Patch
from agents.procedures.audit.patch_applier import patch_of
from agents.procedures.audit.score import score_of
from agents.procedures.audit.test_generator import reproducing_test
from agents.repair.acceptance import Acceptance, try_patch
from agents.repair.test_run import TestResults, run_tests
from agents.repair.work_copy import WorkCopy
from agents.runs.detection import DetectorResults
from agents.runs.event_log import EventLog
from agents.workspace.workspace import Workspace

BARS = (90, 80, 70)
MAX_REPAIRS = 40
"""Patches tried in one round."""

Proposer = Callable[[Finding, Workspace], Awaitable[Patch]]


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the state that it found, and what was tried.

    Attributes:
        bar: the score that passes.
        score: before its repairs.
        findings: before its repairs.
        decisions: about each patch.
    """

    bar: int
    score: int
    findings: tuple[Finding, ...]
    decisions: tuple[Acceptance, ...]


@dataclass(frozen=True, slots=True)
class Healing:
    """What came of it.

    Attributes:
        rounds: at most three.
        passed: whether the last audit reached its bar without a critical finding.
        score: of the last audit.
        findings: that are left.
        diff: everything that was accepted, tests included, as one unified diff.
    """

    rounds: tuple[Round, ...] = ()
    passed: bool = False
    score: int = 0
    findings: tuple[Finding, ...] = ()
    diff: str = ""

    @property
    def accepted(self) -> list[Acceptance]:
        """The accepted patches of all rounds."""
        return [one for each in self.rounds for one in each.decisions if one.accepted]

    @property
    def rejected(self) -> list[Acceptance]:
        """The rejected patches of all rounds."""
        return [one for each in self.rounds for one in each.decisions if not one.accepted]


async def fixers(finding: Finding, workspace: Workspace) -> Patch:
    """The patch of the deterministic fixers."""
    return await asyncio.to_thread(patch_of, finding, workspace)


async def heal(
    root: Path,
    detectors: Sequence[Detector],
    *,
    propose: Proposer = fixers,
    log: EventLog | None = None,
    cancelled: asyncio.Event | None = None,
) -> Healing:
    """Audit, repair and audit again in a copy of a folder.

    Running the folder's tests executes its code: the caller asks for approval first.

    Args:
        root: the folder; it is not changed.
        detectors: the auditors' detectors.
        propose: makes the patch of one finding.
        log: told about each patch.
        cancelled: set to stop between patches.

    Raises:
        InvalidTask: the folder's tests cannot be run, so that nothing could be proved.
        Cancelled: it was stopped.
    """
    stop = cancelled or asyncio.Event()
    events = log or EventLog("repair")
    rounds: list[Round] = []
    with await asyncio.to_thread(WorkCopy, root) as copy:
        baseline = await run_tests(copy.root)
        if baseline.problem:
            raise InvalidTask(f"The tests of {root} cannot be run: {baseline.problem}")
        tried: set[str] = set()
        for bar in BARS:
            findings = await _audit(copy, detectors, stop)
            score = score_of(findings)
            wanted = [
                one
                for one in findings
                if one.severity.at_least(Severity.HIGH) and one.id not in tried
            ]
            if not wanted:
                break
            decisions: list[Acceptance] = []
            for finding in wanted[:MAX_REPAIRS]:
                if stop.is_set():
                    raise Cancelled("The repair was cancelled.")
                tried.add(finding.id)
                decision = await _repair(copy, finding, propose, events, baseline)
                decisions.append(decision)
                if decision.accepted:
                    baseline = await run_tests(copy.root)
            rounds.append(Round(bar, score, tuple(findings), tuple(decisions)))
            if not any(one.accepted for one in decisions):
                break
        left = await _audit(copy, detectors, stop)
        bar = BARS[max(0, len(rounds) - 1)]
        return Healing(
            rounds=tuple(rounds),
            passed=_passes(left, bar),
            score=score_of(left),
            findings=tuple(left),
            diff=await asyncio.to_thread(copy.diff),
        )


def _passes(findings: Sequence[Finding], bar: int) -> bool:
    critical = any(one.severity is Severity.CRITICAL for one in findings)
    return score_of(findings) >= bar and not critical


async def _audit(
    copy: WorkCopy, detectors: Sequence[Detector], stop: asyncio.Event
) -> list[Finding]:
    workspace = await asyncio.to_thread(copy.workspace)
    context = DetectorContext(cancelled=stop.is_set)
    found = await DetectorResults(workspace, context).of(detectors)
    return merge_findings(found)


async def _repair(
    copy: WorkCopy,
    finding: Finding,
    propose: Proposer,
    events: EventLog,
    baseline: TestResults,
) -> Acceptance:
    workspace = await asyncio.to_thread(copy.workspace)
    patch = await propose(finding, workspace)
    test = await asyncio.to_thread(reproducing_test, finding, workspace)
    events.append(
        RunEventType.PATCH_PROPOSED,
        finding=finding.id,
        rule=finding.rule,
        file=finding.file,
        line=finding.line,
        cannot_do=patch.cannot_do,
    )
    decision = await try_patch(copy, finding, patch, test, baseline)
    kind = RunEventType.PATCH_ACCEPTED if decision.accepted else RunEventType.PATCH_REJECTED
    events.append(kind, finding=finding.id, rule=finding.rule, reason=decision.reason)
    return decision
