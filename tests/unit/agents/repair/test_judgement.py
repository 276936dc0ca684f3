"""A repaired project passes by its score, its critical findings and its tests; without tests it is not judged."""

import pytest

from agents.api.events import RunState
from agents.api.finding import Finding, Severity
from agents.project_tests.results import TestResults
from agents.repair.judgement import judge
from agents.repair.result import RepairResult

PASSING = TestResults(passed=frozenset({"a", "b"}))
FAILING = TestResults(passed=frozenset({"a"}), failed=frozenset({"b"}))
BROKEN = TestResults(problem="No Python with pytest was found.")


def finding(severity):
    return Finding(
        file="a.py", line=1, end_line=1, rule="r", severity=severity, message="m", evidence="x"
    )


LOW = [finding(Severity.LOW)]
CRITICAL = [finding(Severity.CRITICAL)]


@pytest.mark.parametrize(
    ("findings", "bar", "tests", "passed", "sentence"),
    [
        (LOW, 90, PASSING, True, "99 of 100 by the detectors' findings reaches the bar of 90; 2 tests pass"),
        (LOW, 90, FAILING, False, "99 of 100 by the detectors' findings reaches the bar of 90; 1 test fails"),
        (LOW, 90, None, None, "99 of 100 by the detectors' findings reaches the bar of 90; the tests did not run"),
        (LOW, 90, BROKEN, None, "99 of 100 by the detectors' findings reaches the bar of 90; the tests did not run"),
        (LOW, 90, TestResults(), None, "99 of 100 by the detectors' findings reaches the bar of 90; the project has no tests"),
        (LOW, 100, PASSING, False, "99 of 100 by the detectors' findings misses the bar of 100; 2 tests pass"),
        (LOW, 100, None, False, "99 of 100 by the detectors' findings misses the bar of 100; the tests did not run"),
        (CRITICAL, 60, PASSING, False, "60 of 100 by the detectors' findings reaches the bar of 60; 1 critical finding is open; 2 tests pass"),
    ],
)  # fmt: skip
def test_a_project_is_judged_by_score_findings_and_tests(findings, bar, tests, passed, sentence):
    judgement = judge(findings, bar, tests, "Nobody allowed it.")
    assert judgement.passed is passed
    assert "; ".join(judgement.reasons) == sentence
    assert bool(judgement.not_judged) == (passed is None)


def test_the_summary_says_what_the_score_is_of_and_why_it_was_not_judged():
    judgement = judge(LOW, 90, None, "Nobody allowed it.")
    result = RepairResult("run-1", RunState.OK, judgement=judgement, score=99, bar=90)
    assert result.summary() == (
        "Nothing repaired; 99 of 100 by the detectors' findings reaches the bar of 90; the tests did not run. "
        "Not judged: Nobody allowed it."
    )
    output = result.fields()["output"]
    assert (output["passed"], output["not_judged"]) == (None, "Nobody allowed it.")
    assert output["score_of"] == "the detectors' findings"


def test_a_project_without_tests_that_pass_is_no_passed_project():
    only_a_part = TestResults(passed=frozenset({"a"}), not_run="1 test file needs pytest.")
    judgement = judge([], 90, only_a_part, "")
    assert (judgement.passed, judgement.not_judged) == (None, "1 test file needs pytest.")
