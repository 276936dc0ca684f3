"""`Healer`: audit a copy, repair what tests can prove, audit again; at most three rounds.

The bars are 90, 80 and 70 points of 100 (`agents.procedures.audit.score`); an open critical finding fails at
any bar. Repairs come from deterministic fixers; a model may propose more.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.api.errors import InvalidTask
from agents.api.events import RunEventType
from agents.api.finding import Finding, Severity, merge_findings
from agents.detectors.detector import Detector, DetectorContext
from agents.outputs.patch import Patch
from agents.procedures.audit.patch_applier import patch_of
from agents.procedures.audit.score import score_of, score_text
from agents.procedures.audit.test_generator import reproducing_tests
from agents.project_tests.results import TestResults
from agents.project_tests.run import run_tests
from agents.repair.acceptance import Acceptance, Approve, Gate, nobody
from agents.repair.judgement import Judgement, judge
from agents.repair.project_root import Project
from agents.repair.result import RepairResult, Round
from agents.repair.work_copy import WorkCopy
from agents.runs.detection import DetectorResults
from agents.runs.event_log import EventLog
from agents.workspace.workspace import Workspace

BARS = (90, 80, 70)
MAX_REPAIRS = 40
"""Patches tried in one round."""

Proposer = Callable[[Finding, Workspace], Awaitable[Patch]]
Reviewer = Callable[[Sequence[Finding], Workspace], Awaitable[list[Finding]]]
"""What a model says about findings: the findings with its votes and its own ones."""


async def fixers(finding: Finding, workspace: Workspace) -> Patch:
    """The patch of the deterministic fixers."""
    return await asyncio.to_thread(patch_of, finding, workspace)


async def as_found(findings: Sequence[Finding], workspace: Workspace) -> list[Finding]:
    """The detectors' findings as they are."""
    return list(findings)


@dataclass(frozen=True, slots=True)
class HealOptions:
    """How to repair.

    Attributes:
        min_severity: findings below it are reported and not repaired.
        propose: makes the patch of one finding.
        review: lets a model look at the first audit's findings.
        approve: asks a person about patches that tests do not prove.
        check: called between steps; raises to stop.
    """

    min_severity: Severity = Severity.HIGH
    propose: Proposer = fixers
    review: Reviewer = as_found
    approve: Approve = nobody
    check: Callable[[], None] = lambda: None


class Healer:
    """The rounds over one copy. What was reached can be read at any time, also after it was stopped.

    Attributes:
        rounds: finished rounds, and the present one so far.
        findings: of the last audit.
        notes: what detectors had to say.
        tests: the last outcome of all tests; None if they did not run.
    """

    def __init__(
        self,
        copy: WorkCopy,
        project: Project,
        detectors: Sequence[Detector],
        log: EventLog,
        options: HealOptions,
    ) -> None:
        self.rounds: list[Round] = []
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.tests: TestResults | None = None
        self._copy = copy
        self._project = project
        self._detectors = detectors
        self._log = log
        self._options = options
        self._by_model: list[Finding] = []
        self._tried: set[tuple[str, bytes]] = set()
        self._hopeless: set[str] = set()

    @property
    def bar(self) -> int:
        """The bar that the last audit must reach."""
        return BARS[max(0, len(self.rounds) - 1)]

    def judgement(self, not_run: str) -> Judgement:
        """Whether the project passes; `not_run` says why its tests did not run."""
        return judge(self.findings, self.bar, self.tests, not_run)

    async def audit(self, *, review: bool = True) -> list[Finding]:
        """Run the auditors in parallel over the copy; the audited part's findings, worst first.

        Args:
            review: whether the first audit's findings go to `HealOptions.review`.
        """
        workspace = await asyncio.to_thread(self._copy.workspace)
        context = DetectorContext(cancelled=self._stopped)
        results = DetectorResults(workspace, context)
        merged = await results.of(self._detectors)
        said = results.notes(one.name for one in self._detectors)
        self.notes += [one for one in said if one not in self.notes]
        own = [one for one in merged if self._project.contains(one.file)]
        self.findings = merge_findings([*own, *_still_quoted(self._by_model, workspace)])
        if review and not self.rounds and not self._by_model:
            await self.review()
        return self.findings

    async def review(self) -> list[Finding]:
        """Let a model look at the last audit's findings; the findings with what it adds."""
        workspace = await asyncio.to_thread(self._copy.workspace)
        self.findings = await self._options.review(self.findings, workspace)
        self._by_model = [one for one in self.findings if one.source == "model"]
        return self.findings

    def _stopped(self) -> bool:
        try:
            self._options.check()
        except Exception:
            return True
        return False

    def wanted(self, workspace: Workspace) -> list[Finding]:
        """The findings that go to repair: severe enough, and not tried yet in this state of their file."""
        return [
            one
            for one in self.findings
            if one.severity.at_least(self._options.min_severity)
            and one.id not in self._hopeless
            and (one.id, _data(workspace, one.file)) not in self._tried
        ]

    async def repair(self, baseline: TestResults) -> None:
        """The rounds, from the audit's findings on. The last thing done is an audit.

        Args:
            baseline: outcome of all tests in the copy.

        Raises:
            Exception: what `check` raises.
        """
        self.tests = baseline
        gate = Gate(self._copy, baseline, self._detectors, approve=self._remembering_approve)
        for number, bar in enumerate(BARS, 1):
            workspace = await asyncio.to_thread(self._copy.workspace)
            if not self.wanted(workspace):
                return
            node = f"round {number}"
            score, found = score_of(self.findings), tuple(self.findings)
            self._state(node, "running")
            self.rounds.append(Round(bar, score, found, ()))
            async for decision in self._decisions(gate, node):
                made = (*self.rounds[-1].decisions, decision)
                self.rounds[-1] = Round(bar, score, found, made)
            after = score_text(self.findings, f"the bar is {bar}")
            self._state(node, "ok", reason=after)
            if not any(one.accepted for one in self.rounds[-1].decisions):
                return

    async def _decisions(self, gate: Gate, node: str) -> AsyncIterator[Acceptance]:
        """Repair one finding after the other, each once; after an accepted patch all auditors run again.

        An accepted patch moves lines and may repair other findings, too.
        """
        attempted: set[str] = set()
        for _ in range(MAX_REPAIRS):
            workspace = await asyncio.to_thread(self._copy.workspace)
            pending = [one for one in self.wanted(workspace) if one.id not in attempted]
            if not pending:
                return
            self._options.check()
            attempted.add(pending[0].id)
            decision = await self._repair(gate, pending[0], node)
            if decision.accepted:
                self.tests = gate.baseline
                await self.audit()
                attempted.discard(pending[0].id)  # what still has this id is another place
            yield decision

    async def _repair(self, gate: Gate, finding: Finding, node: str) -> Acceptance:
        place = f"{finding.rule} {finding.file}:{finding.line}"
        self._log.append(
            RunEventType.TOOL_STARTED, node=node, agent=node, tool="repair", arguments=place
        )
        workspace = await asyncio.to_thread(self._copy.workspace)
        self._tried.add((finding.id, _data(workspace, finding.file)))
        patch = await self._options.propose(finding, workspace)
        if patch.cannot_do:
            self._hopeless.add(finding.id)
        tests = await asyncio.to_thread(reproducing_tests, finding, workspace)
        known = {
            "finding": finding.id,
            "rule": finding.rule,
            "file": finding.file,
            "line": finding.line,
        }
        self._log.append(
            RunEventType.PATCH_PROPOSED,
            node=node,
            agent=node,
            **known,
            cannot_do=patch.cannot_do,
            reason=patch.reason,
        )
        decision = await gate.decide(finding, patch, tests)
        kind = RunEventType.PATCH_ACCEPTED if decision.accepted else RunEventType.PATCH_REJECTED
        self._log.append(
            kind,
            node=node,
            agent=node,
            **known,
            reason=decision.reason,
            proof=decision.proof,
            patch=not patch.cannot_do,
        )
        self._log.append(
            RunEventType.TOOL_FINISHED,
            node=node,
            agent=node,
            tool="repair",
            failed=not decision.accepted,
            text=decision.reason,
        )
        return decision

    async def _remembering_approve(self, finding: Finding, patch: Patch, doubt: str) -> bool:
        self._hopeless.add(finding.id)  # a denied patch is not asked about again in the next round
        return await self._options.approve(finding, patch, doubt)

    def _state(self, node: str, state: str, **data: str) -> None:
        self._log.append(RunEventType.NODE_STATE, node=node, agent=node, state=state, **data)


def _still_quoted(findings: Sequence[Finding], workspace: Workspace) -> list[Finding]:
    """A model's findings whose quote is still in their file."""
    kept = []
    for one in findings:
        file = workspace.get(one.file)
        if file is not None and one.evidence.strip() in (line.strip() for line in file.lines):
            kept.append(one)
    return kept


def _data(workspace: Workspace, path: str) -> bytes:
    file = workspace.get(path)
    return b"" if file is None else file.data


async def heal(
    root: Path,
    detectors: Sequence[Detector],
    *,
    options: HealOptions | None = None,
    log: EventLog | None = None,
) -> RepairResult:
    """Audit and repair a copy of a folder, without a run, approvals or a model.

    Running the folder's tests executes its code: the caller asks for approval first.

    Args:
        root: the folder; it is not changed.
        detectors: the auditors' detectors.
        options: how to repair.
        log: told about each patch.

    Raises:
        InvalidTask: the folder's tests cannot be run, so that nothing could be proved.
    """
    with await asyncio.to_thread(WorkCopy, root) as copy:
        events = log or EventLog("repair")
        healer = Healer(copy, Project(root), detectors, events, options or HealOptions())
        await healer.audit()
        await healer.repair(await baseline_of(copy, root))
        return RepairResult(
            run="",
            rounds=tuple(healer.rounds),
            judgement=healer.judgement("No finding called for a repair."),
            bar=healer.bar,
            score=score_of(healer.findings),
            findings=tuple(healer.findings),
            tests=healer.tests,
            diff=await asyncio.to_thread(copy.diff),
        )


async def baseline_of(copy: WorkCopy, root: Path, output: Path | None = None) -> TestResults:
    """Outcome of all tests before any change; that of no test for a project without tests.

    Args:
        copy: where they run.
        root: the project, for messages.
        output: file that gets their whole output.

    Raises:
        InvalidTask: the tests cannot be run.
    """
    try:
        baseline = await run_tests(copy.root, origin=copy.original, output=output)
    finally:
        await asyncio.to_thread(copy.undo_side_effects)
    if baseline.problem:
        raise InvalidTask(f"The tests of {root} cannot be run: {baseline.problem}")
    return baseline
