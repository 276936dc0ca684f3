"""The exit status of agents and pipelines: findings, the last verdict, and a verdict that was not judged."""

import pytest

from agents.api.finding import Finding, Severity
from agents.outputs.verdict import Verdict
from app.commands.agents.command import EXIT_FINDINGS, EXIT_UNJUDGED
from app.commands.agents.status import status_of

LOW = Finding(
    file="a.py", line=1, end_line=1, rule="r", severity=Severity.LOW, message="m", evidence="x"
)
PASSED, FAILED = Verdict(passed=True), Verdict(passed=False)
UNJUDGED = Verdict(not_judged="the tests did not run.")


@pytest.mark.parametrize(
    ("findings", "outputs", "threshold", "status"),
    [
        ([], [], Severity.LOW, 0),
        ([LOW], [], Severity.LOW, EXIT_FINDINGS),
        ([LOW], [PASSED], Severity.HIGH, 0),
        ([], [FAILED], Severity.LOW, EXIT_FINDINGS),
        ([], [FAILED, PASSED], Severity.LOW, 0),
        ([], [PASSED, None, UNJUDGED], Severity.LOW, EXIT_UNJUDGED),
        ([LOW], [UNJUDGED], Severity.LOW, EXIT_FINDINGS),
        ([LOW], [UNJUDGED], None, 0),
        ([], [Verdict(cannot_do="There is nothing to verify.")], Severity.LOW, 0),
    ],
)
def test_the_status_follows_findings_and_the_last_verdict(findings, outputs, threshold, status):
    assert status_of(findings, outputs, threshold) == status
