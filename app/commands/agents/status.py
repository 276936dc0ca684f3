"""The exit status of runs: by findings from a severity on, and by the verdict."""

from collections.abc import Iterable

from agents.api.finding import Finding, Severity
from agents.outputs.base import Output
from agents.outputs.verdict import Verdict
from app.commands.agents.command import EXIT_FINDINGS, EXIT_UNJUDGED


def status_of(
    findings: Iterable[Finding], outputs: Iterable[Output | None], threshold: Severity | None
) -> int:
    """0 if nothing speaks against the result, 1 if a finding or the verdict does, 3 without a verdict.

    Args:
        findings: all of the run.
        outputs: of its nodes in order; the last verdict counts, as earlier ones may have been repaired.
        threshold: severity from which on findings count; None for a run whose outcome is not asked for.
    """
    if threshold is None:
        return 0
    if any(finding.severity.at_least(threshold) for finding in findings):
        return EXIT_FINDINGS
    verdicts = [one for one in outputs if isinstance(one, Verdict) and not one.cannot_do]
    if not verdicts or verdicts[-1].passed is True:
        return 0
    return EXIT_UNJUDGED if verdicts[-1].passed is None else EXIT_FINDINGS
