"""The score of findings: 100 − 40·critical − 20·high − 5·medium − 1·low, at least 0 (start values)."""

from collections import Counter
from collections.abc import Iterable, Sequence

from agents.api.finding import Finding, Severity

PENALTIES = {
    Severity.CRITICAL: 40,
    Severity.HIGH: 20,
    Severity.MEDIUM: 5,
    Severity.LOW: 1,
    Severity.INFO: 0,
}


def score_of(findings: Iterable[Finding]) -> int:
    """The score in [0, 100]; 100 for no findings."""
    return max(0, 100 - sum(PENALTIES[finding.severity] for finding in findings))


def counts_text(findings: Iterable[Finding]) -> str:
    """Such as `1 critical, 3 medium`, worst first; `no findings` for none."""
    counts = Counter(finding.severity for finding in findings)
    parts = [f"{counts[severity]} {severity.value}" for severity in PENALTIES if counts[severity]]
    return ", ".join(parts) or "no findings"


SCORED = "the detectors' findings"


def score_text(findings: Sequence[Finding], more: str = "", *, of: str = SCORED) -> str:
    """The score with what it is of: `98 of 100 by the detectors' findings (2 low)`, and more behind it."""
    end = f"; {more}" if more else ""
    return f"{score_of(findings)} of 100 by {of} ({counts_text(findings)}){end}."
