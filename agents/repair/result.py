"""`RepairResult`: what a repair delivers, whole or partial."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.api.events import RunState
from agents.api.finding import Finding, finding_fields
from agents.api.usage import Usage
from agents.outputs.verdict import decision_of
from agents.procedures.audit.score import SCORED
from agents.project_tests.results import TestResults, fields_of
from agents.repair.acceptance import Acceptance
from agents.repair.judgement import NO_AUDIT, Judgement


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
class RepairResult:
    """What came of a repair.

    Attributes:
        run: its id.
        state: how it finished.
        rounds: at most three.
        judgement: whether the project passes; not judged before there is an audit.
        nothing_to_repair: whether the first audit found nothing that a repair is tried for.
        bar: the bar of the last audit.
        score: of the last audit, by the detectors' findings.
        findings: those of the last audit.
        tests: the last outcome of all tests; None if they did not run.
        diff: everything that was accepted, tests included, as one unified diff.
        applied: whether the diff was written to the user's tree.
        model: name of the model that took part, or empty.
        notes: what the user should know.
        usage: what it used.
        error: one sentence if it failed.
        failing_tests: decisions about tests that failed before any change.
    """

    run: str
    state: RunState = RunState.OK
    rounds: tuple[Round, ...] = ()
    judgement: Judgement = NO_AUDIT
    nothing_to_repair: bool = False
    bar: int = 0
    score: int = 0
    findings: tuple[Finding, ...] = ()
    tests: TestResults | None = None
    diff: str = ""
    applied: bool = False
    model: str = ""
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error: str = ""
    failing_tests: tuple[Acceptance, ...] = ()

    @property
    def decisions(self) -> list[Acceptance]:
        """All decisions: those about failing tests, then those of the rounds."""
        return [*self.failing_tests, *(one for each in self.rounds for one in each.decisions)]

    @property
    def accepted(self) -> list[Acceptance]:
        """The accepted patches."""
        return [one for one in self.decisions if one.accepted]

    @property
    def rejected(self) -> list[Acceptance]:
        """The rejected patches."""
        return [one for one in self.decisions if not one.accepted]

    @property
    def passed(self) -> bool | None:
        """Whether the project passes; None if that was not judged."""
        return self.judgement.passed

    def summary(self) -> str:
        """What was repaired, the score and the bar, the tests, and the decision."""
        tried = len(self.accepted) + len(self.rejected)
        parts = [
            f"{len(self.accepted)} of {tried} findings repaired" if tried else "Nothing repaired"
        ]
        parts += self.judgement.reasons
        if self.diff:
            parts.append(f"the diff is {'applied' if self.applied else 'not applied'}")
        decision = f"{decision_of(self.passed).capitalize()}."
        if self.judgement.not_judged:
            decision = f"Not judged: {self.judgement.not_judged}"
        return f"{'; '.join(parts)}. {decision}"

    def fields(self) -> Mapping[str, Any]:
        """The result as JSON members: those of `pravaha agents repair --json`."""
        return {
            "run": self.run,
            "state": self.state.value,
            "model": self.model or None,
            "findings": [finding_fields(finding) for finding in self.findings],
            "output": {
                "text": self.summary(),
                "passed": self.passed,
                "not_judged": self.judgement.not_judged,
                "score": self.score,
                "score_of": SCORED,
                "tests": None if self.tests is None else fields_of(self.tests),
                "bar": self.bar,
                "applied": self.applied,
                "decisions": [decision_text(one) for one in self.decisions],
                "diff": self.diff,
            },
            "failing_tests": [_decision_fields(one) for one in self.failing_tests],
            "rounds": [
                {
                    "bar": each.bar,
                    "score": each.score,
                    "decisions": [_decision_fields(one) for one in each.decisions],
                }
                for each in self.rounds
            ],
            "notes": list(self.notes),
            "error": self.error or None,
            "usage": {
                "computed_tokens": self.usage.computed_tokens,
                "cached_tokens": self.usage.cached_tokens,
                "generated_tokens": self.usage.generated_tokens,
                "tool_calls": self.usage.tool_calls,
                "seconds": round(self.usage.seconds, 3),
            },
        }


def decision_text(one: Acceptance) -> str:
    """A decision with its reason in one line."""
    word = "accepted" if one.accepted else "no patch for" if one.patch.cannot_do else "rejected"
    return f"{word} {one.finding.rule} {one.finding.file}:{one.finding.line}: {one.reason}"


def _decision_fields(one: Acceptance) -> dict[str, Any]:
    return {
        "finding": finding_fields(one.finding),
        "accepted": one.accepted,
        "proof": one.proof or None,
        "reason": one.reason,
        "patch": one.patch.diff,
        "patch_reason": one.patch.reason,
        "test": one.test.path or None,
        "test_kind": one.test.kind or None,
        "test_reason": one.test.reason or one.test.cannot_do,
    }
