"""`Judgement`: whether a repaired project passes, fails, or is not judged, as its tests did not run."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.api.finding import Finding, Severity
from agents.procedures.audit.score import SCORED, score_of
from agents.project_tests.results import TestResults


@dataclass(frozen=True, slots=True)
class Judgement:
    """The decision about a project after its last audit.

    Attributes:
        passed: whether the bar was reached, no critical finding is open and the tests pass; None if only the
            tests could tell and they did not run.
        not_judged: why they did not; empty if it was judged.
        reasons: the score with what it is of, what is open, and the tests, each without a full stop.
    """

    passed: bool | None
    not_judged: str
    reasons: tuple[str, ...]


def judge(
    findings: Sequence[Finding], bar: int, tests: TestResults | None, not_run: str
) -> Judgement:
    """Judge by the findings and the tests.

    Args:
        findings: of the last audit.
        bar: the score that passes.
        tests: the last outcome of all tests; None if they did not run.
        not_run: why they did not run.
    """
    score = score_of(findings)
    critical = sum(1 for one in findings if one.severity is Severity.CRITICAL)
    reached = score >= bar
    word = "reaches" if reached else "misses"
    reasons = [f"{score} of 100 by {SCORED} {word} the bar of {bar}"]
    if critical:
        are = "finding is" if critical == 1 else "findings are"
        reasons.append(f"{critical} critical {are} open")
    unjudged = ""
    if tests is None or tests.problem:
        unjudged = not_run if tests is None else tests.problem
        reasons.append("the tests did not run")
    elif not tests.any:
        unjudged = "The project has no tests."
        reasons.append("the project has no tests")
    elif tests.failed:
        count = tests.num_failed
        reasons.append(f"{count} {'test fails' if count == 1 else 'tests fail'}")
    else:
        count = tests.num_passed
        reasons.append(f"{count} {'test passes' if count == 1 else 'tests pass'}")
    unjudged = unjudged or ("" if tests is None else tests.not_run)
    failed = not reached or bool(critical) or bool(tests is not None and tests.failed)
    if failed:
        return Judgement(False, "", tuple(reasons))
    return Judgement(None if unjudged else True, unjudged, tuple(reasons))


NO_AUDIT = Judgement(None, "There was no audit.", ())
