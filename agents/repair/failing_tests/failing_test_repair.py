"""`FailingTestRepair`: from failing tests to patches that the gate accepts, one test after the other.

What passes all tests is not yet right: tests of a small project allow much. So all candidates that pass are
compared on varied tests, and one is proposed only if more speaks for what it does than for what any other
does (`MARGIN`). Small changes are tried first, because a trial takes a fifth of a second. A model is asked
unless one usual slip, and nothing else of its kind, explains the failure.
"""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePosixPath
from time import monotonic
from typing import Any

from agents.api.budget import BudgetMeter
from agents.api.errors import BudgetExhausted, InvalidTask, ModelFailure
from agents.api.events import RunEventType
from agents.api.finding import Finding, Severity, finding_fields
from agents.api.usage import Usage
from agents.detectors.audit.python_module import module_of
from agents.model.session import ModelSession
from agents.outputs.patch import Patch
from agents.outputs.test_file import TestFile
from agents.repair.acceptance import Acceptance, Gate
from agents.repair.failing_tests.candidates import Cluster, PatchCandidate, clusters
from agents.repair.failing_tests.rewrites import MAX_LINES, private_file, rewritten
from agents.repair.failing_tests.slips import SLIPS_S, Slips, usual_slips
from agents.repair.failing_tests.suspects import Suspect, functions_of, suspects_of
from agents.repair.failing_tests.test_bench import TestBench, reported_name
from agents.repair.failing_tests.test_python import TestPython
from agents.repair.project_root import Project
from agents.repair.work_copy import WorkCopy
from agents.runs.event_log import EventLog
from engine.api.errors import EngineUnavailable, InvalidRequest

RULE = "failing-test"
NODE = "failing tests"
MAX_TESTS = 20
"""Failing tests that a repair tries to mend; one patch often mends several."""
MAX_ASKED = 2
"""Suspects of one test that a model is asked about."""
ALL_SLIPS_S = 600.0
"""Seconds in which usual slips are tried, for all tests together."""
MARGIN = 1.5
"""What speaks for a repair must be more than this times what speaks for another one."""
MIN_SAMPLES = 2
"""Samples of a model that must agree where no usual slip does the same."""
COMPARE_S = 60.0

Sessions = Callable[[], Awaitable[ModelSession | None]]
"""The model that may write code, or None."""


async def no_model() -> ModelSession | None:
    """Without a model."""
    return None


class FailingTestRepair:
    """The failing tests of one copy. Use from one event loop.

    Attributes:
        decisions: about each test that was tried, in order.
        usage: tokens of the model.
    """

    def __init__(
        self,
        copy: WorkCopy,
        project: Project,
        gate: Gate,
        log: EventLog,
        *,
        model: Sessions = no_model,
        meter: BudgetMeter | None = None,
        check: Callable[[], None] = lambda: None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Begin; nothing runs yet.

        Args:
            copy: where patches are tried.
            project: only what it contains is changed.
            gate: decides; its baseline has the failing tests.
            log: told about everything.
            model: which model writes code, asked when it is needed.
            meter: pays for the model's tokens.
            check: called between steps; raises to stop.
            note: tells the user something.
        """
        self.decisions: list[Acceptance] = []
        self.usage = Usage()
        self._copy = copy
        self._project = project
        self._gate = gate
        self._log = log
        self._model = model
        self._meter = meter
        self._check = check
        self._note = note
        self._asked: set[tuple[str, str, bytes]] = set()
        self._slips_s = ALL_SLIPS_S

    async def repair(self) -> None:
        """Try to mend one failing test after the other.

        Raises:
            InvalidTask: the tests cannot be run one by one.
            Exception: what `check` raises.
        """
        command = self._gate.baseline.command
        python = (
            None
            if command is None
            else TestPython.of(command, self._copy.root, self._copy.original)
        )
        if python is None:
            self._note("Failing tests are repaired only where pytest runs them.")
            return
        tried: set[str] = set()
        bench = await TestBench.open(self._copy, python, self._gate.baseline)
        for test in sorted(bench.spectrum.failed):
            self._tell(RunEventType.FINDING, **_test_fields(test, bench))
        while True:
            left = sorted(bench.spectrum.failed - tried)
            if not left or len(tried) >= MAX_TESTS:
                return
            self._check()
            tried.add(left[0])
            decision = await self._mend(bench, left[0])
            self.decisions.append(decision)
            self._decided(decision)
            if decision.accepted:
                bench = await TestBench.open(self._copy, python, self._gate.baseline)

    # One test.

    async def _mend(self, bench: TestBench, test: str) -> Acceptance:
        finding = finding_of_test(test, bench)
        suspects = [
            one
            for one in suspects_of(test, bench.spectrum, bench.workspace)
            if self._project.contains(one.path)
        ]
        self._tell(
            RunEventType.SUSPECTS, test=test, suspects=[_suspect_fields(one) for one in suspects]
        )
        if not suspects:
            return _none(finding, "The test runs no code of the project that may be changed.")
        began = monotonic()
        slips = await usual_slips(
            bench, suspects, test, self._refusal(bench), total_s=min(SLIPS_S, self._slips_s)
        )
        self._slips_s -= monotonic() - began
        self._tell_slips(test, slips)
        passed = list(slips.passed)
        chosen = await self._chosen(bench, test, passed)
        if isinstance(chosen, str) or not _is_usual(chosen):
            self._check()
            more = await self._written(bench, suspects, test, passed, slips)
            if more:
                passed += more
                chosen = await self._chosen(bench, test, passed)
        if isinstance(chosen, str):
            return _none(finding, chosen)
        if not slips.complete and not any(one.votes for one in chosen.candidates):
            return _none(
                finding, "There was no time to try all slips as usual as the one that passes."
            )
        return await self._propose(bench, test, chosen, finding)

    async def _chosen(
        self, bench: TestBench, test: str, passed: Sequence[PatchCandidate]
    ) -> Cluster | str:
        """What most speaks for, or why nothing is chosen."""
        if not passed:
            return "No change that was tried makes it pass without breaking another test."
        most = max(one.mended for one in passed)
        best = [one for one in passed if one.mended == most]
        if len(best) > 1:
            varied = bench.varied([one.suspect for one in best])
            await bench.sign(best, varied, total_s=COMPARE_S)
        found = clusters(best)
        ahead = len(found) == 1 or found[0].weight > MARGIN * found[1].weight
        alone = found[0].is_by_model and found[0].weight < MIN_SAMPLES
        shown = [
            {
                "weight": one.weight,
                "what": one.best.what,
                "name": one.best.suspect.name,
                "diff": one.best.diff,
            }
            for one in found
        ]
        said = f"{found[0].best.what} in {found[0].best.suspect.name}"
        if alone and len(found) == 1:
            ahead = False
            reason = f"One sample of the model alone passes, and nothing confirms it: {said}."
        elif ahead:
            others = f", which outweighs {len(found) - 1} other repairs" if len(found) > 1 else ""
            reason = f"{said}{others}"
        else:
            reason = (
                f"The tests allow {len(found)} different repairs: {said}, or "
                f"{found[1].best.what} in {found[1].best.suspect.name}. "
                "A test that tells them apart would decide."
            )
        self._tell(
            RunEventType.DECISION,
            question="which repair",
            test=test,
            label=said if ahead else "",
            abstained=not ahead,
            reason=reason,
            clusters=shown,
        )
        return found[0] if ahead else reason

    async def _written(
        self,
        bench: TestBench,
        suspects: Sequence[Suspect],
        test: str,
        passed: Sequence[PatchCandidate],
        slips: Slips,
    ) -> list[PatchCandidate]:
        """Candidates that a model wrote, for one suspect after the other until some pass."""
        try:
            session = await self._model()
            if session is None:
                return []
            found: list[PatchCandidate] = []
            for suspect in _asked(suspects, passed, slips):
                file = bench.workspace.get(suspect.path)
                key = (suspect.path, suspect.name, b"" if file is None else file.data)
                if key in self._asked and not passed:
                    continue  # another test of the same fault: the model had no answer
                self._asked.add(key)
                private = private_file(bench, suspect, test)
                if private:
                    self._note(f"{private} holds private data, which no model is shown.")
                    continue
                self._check()
                written = await rewritten(
                    bench,
                    suspect,
                    test,
                    session,
                    self._refusal(bench),
                    passed,
                    record=self._tell,
                    meter=self._meter,
                )
                self.usage = self.usage.plus(written.usage)
                found += written.passed
                if found:
                    break
            return found
        except (ModelFailure, EngineUnavailable, BudgetExhausted, InvalidRequest) as error:
            self._note(f"The model wrote no repair: {error}")
            return []

    async def _propose(
        self, bench: TestBench, test: str, chosen: Cluster, finding: Finding
    ) -> Acceptance:
        """Have the gate decide about the smallest change, then about others that do the same."""
        decision = _none(finding, "")
        for candidate in chosen.candidates[:3]:
            place = _finding_of(candidate.suspect, test, bench)
            patch = Patch(
                diff=candidate.diff,
                reason=f"{candidate.suspect.name}: {candidate.what}."[:500],
                finding_ids=[place.id],
            )
            self._tell(
                RunEventType.PATCH_PROPOSED,
                finding=place.id,
                rule=RULE,
                file=place.file,
                line=place.line,
                cannot_do="",
                reason=patch.reason,
            )
            decision = await self._gate.decide_failing(
                place, patch, frozenset({reported_name(test)})
            )
            if decision.accepted:
                return decision
        return decision

    def _refusal(self, bench: TestBench) -> Callable[[PatchCandidate], str]:
        """The gate's rules for a candidate, which cost a run of the detectors over all files."""

        def refusal(candidate: PatchCandidate) -> str:
            after = bench.workspace.with_text(candidate.suspect.path, candidate.text)
            try:
                return self._gate.refusal(
                    _finding_of(candidate.suspect, "", bench), bench.workspace, after
                )
            except InvalidTask as error:
                return str(error)

        return refusal

    # Telling.

    def _tell(self, kind: RunEventType, **data: Any) -> None:
        self._log.append(kind, node=NODE, agent=NODE, **data)

    def _tell_slips(self, test: str, slips: Slips) -> None:
        self._tell(
            RunEventType.SLIPS_TRIED,
            test=test,
            tried=slips.tried,
            dropped=dict(slips.dropped),
            passed=[
                {"what": one.what, "name": one.suspect.name, "tier": one.tier, "diff": one.diff}
                for one in slips.passed
            ],
            near=[
                {
                    "what": one.what,
                    "name": one.suspect.name,
                    "check": drop.check,
                    "detail": drop.detail,
                }
                for one, drop in slips.near[:10]
            ],
        )

    def _decided(self, decision: Acceptance) -> None:
        kind = RunEventType.PATCH_ACCEPTED if decision.accepted else RunEventType.PATCH_REJECTED
        finding = decision.finding
        self._tell(
            kind,
            finding=finding.id,
            rule=finding.rule,
            file=finding.file,
            line=finding.line,
            reason=decision.reason,
            proof=decision.proof,
            patch=not decision.patch.cannot_do,
            diff=decision.patch.diff,
        )


def _is_usual(chosen: Cluster) -> bool:
    """Whether what was chosen needs no second opinion: a usual slip, or one that is wrong by itself."""
    return any(one.tier is not None and one.tier <= 1 for one in chosen.candidates)


def _asked(
    suspects: Sequence[Suspect], passed: Sequence[PatchCandidate], slips: Slips
) -> list[Suspect]:
    """The functions that a model is asked about: those where something passed, or nearly, come first."""
    wanted = [one.suspect for one in passed] + [one.suspect for one, _ in slips.near]
    ordered = list(dict.fromkeys([(one.path, one.name) for one in [*wanted, *suspects]]))
    by_name = {(one.path, one.name): one for one in suspects}
    return [
        suspect
        for key in ordered
        if (suspect := by_name[key]).is_function and suspect.last - suspect.first < MAX_LINES
    ][:MAX_ASKED]


def _none(finding: Finding, reason: str) -> Acceptance:
    """Nothing was proposed."""
    return Acceptance(
        finding,
        Patch(cannot_do=reason[:300] or "-"),
        TestFile(cannot_do="It fails already."),
        False,
        reason,
    )


def finding_of_test(test: str, bench: TestBench) -> Finding:
    """A failing test as a finding at the test."""
    path, _, rest = test.partition("::")
    file = bench.workspace.get(path)
    module = None if file is None else module_of(file)
    name = rest.partition("[")[0].replace("::", ".")
    node = None if module is None else dict(functions_of(module.tree)).get(name)
    line = 1 if node is None else node.lineno
    said = next(iter(bench.spectrum.errors(test)), "it does not pass")[:300]
    return Finding(
        file=path,
        line=line,
        end_line=line if node is None else node.end_lineno or line,
        rule=RULE,
        severity=Severity.HIGH,
        message=f"{rest or PurePosixPath(path).name} fails: {said}",
        evidence="" if file is None or node is None else file.lines[line - 1].strip(),
        detector="project_tests",
    )


def _finding_of(suspect: Suspect, test: str, bench: TestBench) -> Finding:
    """A suspect as the place of a repair: all its lines may change."""
    file = bench.workspace.get(suspect.path)
    return Finding(
        file=suspect.path,
        line=suspect.first,
        end_line=suspect.last,
        rule=RULE,
        severity=Severity.HIGH,
        message=f"{suspect.name} makes {test.rpartition('::')[2]} fail.",
        evidence="" if file is None else file.lines[suspect.first - 1].strip(),
    )


def _test_fields(test: str, bench: TestBench) -> dict[str, Any]:
    text = bench.spectrum.texts.get(test, "")
    return {**finding_fields(finding_of_test(test, bench)), "test": test, "text": text[-4000:]}


def _suspect_fields(one: Suspect) -> dict[str, Any]:
    return {
        "file": one.path,
        "name": one.name,
        "line": one.first,
        "end_line": one.last,
        "score": round(one.score, 3),
        "in_trace": one.in_trace,
    }
