"""`RepairRun`: the self-healing audit of one project, from its recorded state to the applied diff.

It asks before it runs the project's tests, before it keeps a patch that tests do not prove, and before it
writes to the user's tree. Until that last step the user's tree is only read; a run that is stopped or killed
leaves it as it was. Everything that happens is an event of the run's log.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agents.api.agent_spec import AgentSpec, PermissionMode
from agents.api.budget import Budget, BudgetMeter
from agents.api.errors import (
    AgentError,
    BudgetExhausted,
    Cancelled,
    InvalidTask,
    PermissionDenied,
)
from agents.api.events import RunEventType, RunState
from agents.api.finding import Finding, Severity, finding_fields
from agents.api.usage import Usage
from agents.outputs.patch import Patch
from agents.plugins.registry import Registry
from agents.procedures.audit.score import score_of
from agents.project_tests.plan import TestPlan, find_test_plan
from agents.project_tests.results import TestResults
from agents.repair.acceptance import Gate
from agents.repair.apply import apply_changes, undo_unfinished
from agents.repair.failing_tests.failing_test_repair import NODE, FailingTestRepair, no_model
from agents.repair.heal import Healer, HealOptions, as_found, baseline_of, fixers
from agents.repair.judgement import Judgement
from agents.repair.model_help import ModelHelp
from agents.repair.permissions import Permissions
from agents.repair.project_root import Project
from agents.repair.result import RepairResult
from agents.repair.tree_state import TreeState
from agents.repair.work_copy import WorkCopy
from agents.roster.roster import Roster
from agents.runs.agent_run import new_run_id
from agents.runs.approvals import Approvals
from agents.runs.event_log import EventLog
from agents.steps.model_phase import StepsPhase
from agents.tools.tool import Effect

_LOG = logging.getLogger(__name__)

AUDITORS = (
    "syntax_audit", "logic_flaw", "edge_case_hunter", "security_audit", "injection_scanner", "auth_audit",
    "crypto_audit", "network_security", "privilege_audit", "secrets_scanner",
)  # fmt: skip
"""The auditors of a repair unless others are named: those whose findings lie in the source."""
BUDGET = Budget(tokens=200_000, seconds=1_800.0, tools=1_000)


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """What a user chooses.

    Attributes:
        min_severity: findings below it are reported and not repaired.
        agents: keys of the auditors.
        mode: permission mode.
        apply: write the diff without asking in the mode `auto`; the mode `ask` asks anyway.
        budget: bounds of the run.
    """

    min_severity: Severity = Severity.HIGH
    agents: Sequence[str] = AUDITORS
    mode: PermissionMode = "ask"
    apply: bool = False
    budget: Budget = BUDGET


class RepairRun:
    """One repair. Use from one event loop."""

    def __init__(
        self,
        project: Project,
        registry: Registry,
        roster: Roster,
        approvals: Approvals,
        *,
        options: RepairOptions,
        cancelled: asyncio.Event | None = None,
        model: StepsPhase | None = None,
        artifacts: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare a run.

        Args:
            project: where it works.
            registry: where the auditors' detectors are found.
            roster: where the auditors are found.
            approvals: where questions wait for a decision.
            options: what the user chose.
            cancelled: set to stop the run.
            model: the model phase, or None to run without a model.
            artifacts: folder for the output of the tests; None keeps none.
            clock: monotonic seconds.

        Raises:
            UnknownAgent: an auditor or a detector does not exist.
        """
        self.id = new_run_id()
        self.log = EventLog(self.id)
        self._project = project
        self._options = options
        self._specs: list[AgentSpec] = [roster.get(key) for key in options.agents]
        names = dict.fromkeys(name for spec in self._specs for name in spec.detectors)
        self._detectors = [registry.detector(name) for name in names]
        self._cancelled = cancelled or asyncio.Event()
        self._clock = clock
        self._began = clock()
        self._meter = BudgetMeter(options.budget, started=self._began)
        self._permissions = Permissions(
            approvals, self.log, self.id, options.mode, str(project.root)
        )
        self._notes: list[str] = []
        self._model = None
        if model is not None:
            self._model = ModelHelp(model, self._specs, self._meter, self.log, self._note)
        self._healer: Healer | None = None
        self._failing: FailingTestRepair | None = None
        self._told: set[str] = set()
        self._diff = ""
        self._applied = False
        self._artifacts = artifacts
        self._not_run = ""
        self._nothing_to_repair = False

    async def execute(self) -> RepairResult:
        """Run to the end. Never raises for what goes wrong; only `asyncio.CancelledError` passes."""
        self.log.append(RunEventType.RUN_STATE, state=RunState.RUNNING.value)
        work = asyncio.ensure_future(self._work())
        stop = asyncio.ensure_future(self._cancelled.wait())
        try:
            left = max(0.0, self._meter.seconds_left(self._clock()))
            await asyncio.wait({work, stop}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            if not work.done():
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        return self._finish(*self._outcome(work))

    async def _work(self) -> None:
        root = self._project.root
        if await asyncio.to_thread(undo_unfinished, root):
            self._note(
                "An earlier repair was killed while it was applied; its half was taken back."
            )
        state = await asyncio.to_thread(TreeState.of, root)
        with await asyncio.to_thread(WorkCopy, root) as copy:
            healer = Healer(copy, self._project, self._detectors, self.log, self._heal_options())
            self._healer = healer
            try:
                await self._repair(healer, copy)
            finally:
                self._diff = copy.diff()
            if self._diff:
                await self._apply(copy, state)

    async def _repair(self, healer: Healer, copy: WorkCopy) -> None:
        self._row("audit", "running")
        self._found(await healer.audit(review=False))
        self._row("audit", "ok", reason=f"{len(self._detectors)} detectors")
        wanted = bool(healer.wanted(copy.workspace()))
        plan = await asyncio.to_thread(find_test_plan, self._project.root)
        if not plan.has_tests:
            self._found(await healer.review())
            wanted = bool(healer.wanted(copy.workspace()))
            if not wanted:
                self._nothing_to_repair = True
                self._not_run = "No finding called for a repair, so the tests were not run."
                return
        try:
            await self._permissions.ask(
                "run_tests",
                Effect.EXECUTE,
                target=f"the tests in a copy of {self._project.root}",
                arguments=f"{_tests_line(plan)}, over and over, in a copy of {self._project.root}",
                reason="running a project's tests executes its code",
                node="tests",
            )
        except PermissionDenied as error:
            because = "only tests can prove a repair" if wanted else "the tests were not run"
            self._note(f"Nothing was repaired, because {because}. {error}")
            self._row("tests", "denied", reason=str(error))
            self._not_run = str(error)
            self._nothing_to_repair = not wanted
            if plan.has_tests:
                self._found(await healer.review())
            return
        self._row("tests", "running")
        output = None if self._artifacts is None else self._artifacts / f"tests-{self.id}.log"
        try:
            baseline = await baseline_of(copy, self._project.root, output)
        except InvalidTask as error:
            self._note(f"Nothing was repaired, because only tests can prove a repair. {error}")
            self._row("tests", "failed", reason=str(error))
            self._not_run = str(error)
            if plan.has_tests:
                self._found(await healer.review())
            return
        if baseline.used:
            self._note(baseline.used)
        if baseline.output is not None:
            self._note(f"The output of the tests is in {baseline.output}.")
        passed, failed = len(baseline.passed), len(baseline.failed)
        reason = f"{passed} pass, {failed} fail before any change. {baseline.used}"
        self._row("tests", "ok", reason=reason.strip())
        if not baseline.any:
            self._note(
                "The project has no tests: only a test written for a finding judges its repair."
            )
        healer.tests = baseline
        if failed:
            # A model that looks for further defects before the tests pass would only cost time.
            baseline = await self._mend_tests(healer, copy, baseline)
        elif plan.has_tests:
            self._found(await healer.review())
        await healer.repair(baseline)

    def _found(self, findings: Sequence[Finding]) -> None:
        """Tell each finding once."""
        for finding in findings:
            if finding.id not in self._told:
                self._told.add(finding.id)
                self.log.append(
                    RunEventType.FINDING, node="audit", agent="audit", **finding_fields(finding)
                )

    async def _mend_tests(
        self, healer: Healer, copy: WorkCopy, baseline: TestResults
    ) -> TestResults:
        """Repair what makes tests fail; the outcome of all tests afterwards."""
        gate = Gate(copy, baseline, self._detectors, approve=self._approve)
        repair = FailingTestRepair(
            copy,
            self._project,
            gate,
            self.log,
            model=no_model if self._model is None else self._model.writer,
            meter=self._meter,
            check=self._check,
            note=self._note,
        )
        self._failing = repair
        self._row(NODE, "running")
        try:
            await repair.repair()
        except InvalidTask as error:
            self._note(str(error))
        healer.tests = gate.baseline
        left = len(gate.baseline.failed)
        mended = len(baseline.failed) - left
        self._row(NODE, "ok", reason=f"{mended} of {len(baseline.failed)} pass now")
        if left:
            words = "test still fails; it judges" if left == 1 else "tests still fail; they judge"
            self._note(f"{left} {words} no other repair.")
        if any(one.accepted for one in repair.decisions):
            await healer.audit(review=False)
        return gate.baseline

    def _heal_options(self) -> HealOptions:
        model = self._model
        return HealOptions(
            min_severity=self._options.min_severity,
            propose=fixers if model is None else model.propose,
            review=as_found if model is None else model.review,
            approve=self._approve,
            check=self._check,
        )

    async def _approve(self, finding: Finding, patch: Patch, doubt: str) -> bool:
        """Ask a person about a patch that tests do not prove, in every mode but `deny`."""
        try:
            await self._permissions.ask(
                "keep_unproved_patch",
                Effect.WRITE,
                target=f"{finding.rule} {finding.file}:{finding.line}, diff {_short_digest(patch.diff)}",
                arguments=f"{finding.message}\n{patch.reason}\n\n{patch.diff}",
                reason=doubt,
                diff=patch.diff,
                node=f"round {len(self._healer.rounds) if self._healer is not None else 1}",
                always=True,
            )
        except PermissionDenied:
            return False
        return True

    async def _apply(self, copy: WorkCopy, state: TreeState) -> None:
        """Write the accepted changes to the user's tree, if that is wanted and allowed."""
        options = self._options
        if options.mode == "deny" or (options.mode == "auto" and not options.apply):
            return
        changes = copy.changes()
        try:
            await self._permissions.ask(
                "apply_repair",
                Effect.WRITE,
                target=f"{len(changes)} files, diff {_short_digest(self._diff)}",
                arguments=self._diff,
                reason="it changes your files",
                diff=self._diff,
                node="apply",
            )
        except PermissionDenied as error:
            self._note(f"The diff was not applied. {error}")
            self._row("apply", "denied", reason=str(error))
            return
        writing = asyncio.ensure_future(
            asyncio.to_thread(apply_changes, self._project.root, changes, state)
        )
        try:
            await asyncio.shield(writing)
        finally:
            # Once it has begun, it is done or undone as a whole, also if the run is stopped.
            await asyncio.wait({writing})
            self._applied = writing.exception() is None
        self._row("apply", "ok", reason=f"{len(changes)} files written")

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled("The repair was cancelled.")
        if self._meter.seconds_left(self._clock()) <= 0:
            raise BudgetExhausted(self._spent())

    def _spent(self) -> str:
        return f"The budget of {self._meter.budget.seconds:g} s is used up."

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)
            self.log.append(RunEventType.NOTE, text=text)

    def _row(self, node: str, state: str, **data: str) -> None:
        self.log.append(RunEventType.NODE_STATE, node=node, agent=node, state=state, **data)

    def _outcome(self, work: "asyncio.Future[None]") -> tuple[RunState, str]:
        """How the run finished, and one sentence if it did not finish well."""
        if work.cancelled():
            if self._cancelled.is_set():
                kept = "the diff was applied" if self._applied else "your tree is as it was"
                return RunState.CANCELLED, f"The repair was cancelled; {kept}."
            return RunState.EXHAUSTED, self._spent()
        match work.exception():
            case None:
                return RunState.OK, ""
            case Cancelled() as stopped:
                return RunState.CANCELLED, str(stopped)
            case BudgetExhausted() as ended:
                return RunState.EXHAUSTED, str(ended)
            case AgentError() | OSError() as failure:
                return RunState.FAILED, str(failure)
            case failure:  # a mistake of ours must not end the service
                error = f"{type(failure).__name__}: {failure!s:.300}"
                _LOG.error("repair of %s failed", self._project.root, exc_info=failure)
                self.log.append(RunEventType.ERROR, text=error)
                return RunState.FAILED, error

    def _finish(self, state: RunState, error: str) -> RepairResult:
        healer = self._healer
        for text in healer.notes if healer is not None else ():
            self._note(text)
        usage = Usage() if self._model is None else self._model.usage
        if self._failing is not None:
            usage = usage.plus(self._failing.usage)
        result = RepairResult(
            run=self.id,
            state=state,
            diff=self._diff,
            applied=self._applied,
            model="" if self._model is None else self._model.name,
            notes=tuple(self._notes),
            usage=replace(usage, seconds=self._clock() - self._began),
            error=error,
            failing_tests=() if self._failing is None else tuple(self._failing.decisions),
        )
        if healer is not None:
            result = replace(
                result,
                rounds=tuple(healer.rounds),
                judgement=_stopped(healer.judgement(error or self._not_run), state, error),
                nothing_to_repair=self._nothing_to_repair,
                tests=healer.tests,
                bar=healer.bar,
                score=score_of(healer.findings),
                findings=tuple(healer.findings),
            )
        self.log.append(RunEventType.RUN_STATE, state=state.value, error=error)
        return result


def _stopped(judgement: Judgement, state: RunState, error: str) -> Judgement:
    """A run that did not finish passes nothing."""
    if state is RunState.OK or judgement.passed is not True:
        return judgement
    return replace(judgement, passed=None, not_judged=error)


def _tests_line(plan: TestPlan) -> str:
    """The command that runs the tests, as far as the files show it."""
    return plan.commands[0].line if plan.commands else "python -m pytest"


def _short_digest(diff: str) -> str:
    """Part of the words that are allowed "always": another diff must be asked about again."""
    return hashlib.blake2b(diff.encode(), digest_size=6).hexdigest()
