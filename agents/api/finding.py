"""`Finding`: one defect at one place in one file, and its `Severity`.

Frozen; passed between threads. The JSON form (`finding_fields`) is that of `pravaha agents run --json`.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

MAX_MESSAGE = 500
MAX_EVIDENCE = 300

FindingSource = Literal["detector", "model"]


class Severity(StrEnum):
    """How bad a finding is, in ascending order."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for `info` to 4 for `critical`."""
        return _RANKS[self]

    def at_least(self, other: "Severity") -> bool:
        """Whether this severity is `other` or worse."""
        return self.rank >= other.rank


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect.

    Attributes:
        file: path relative to the workspace's root, with `/`.
        line: first line, from 1. 0 if the finding concerns the file as a whole.
        end_line: last line, at least `line`.
        rule: the detector's rule id, such as `B602`, `F821` or `sql-injection`.
        severity: how bad it is.
        message: what is wrong and what to do, in one or two sentences, at most 500 characters.
        evidence: a quote of the lines, at most 300 characters; secrets are redacted.
        confidence: in [0, 1], that this is a real defect.
        detector: name of the detector that found it; empty for a finding of the model.
        cwe: number in the Common Weakness Enumeration, or None.
        reference: id in another catalogue (WCAG criterion, heuristic, control, advisory), or None.
        source: `detector`, or `model` for what only a model claims.
    """

    file: str
    line: int
    end_line: int
    rule: str
    severity: Severity
    message: str
    evidence: str = ""
    confidence: float = 1.0
    detector: str = ""
    cwe: int | None = None
    reference: str | None = None
    source: FindingSource = "detector"

    def __post_init__(self) -> None:
        """Bound the texts and the line range."""
        object.__setattr__(self, "message", _bounded(self.message, MAX_MESSAGE))
        object.__setattr__(self, "evidence", _bounded(self.evidence, MAX_EVIDENCE))
        object.__setattr__(self, "end_line", max(self.line, self.end_line))

    @property
    def id(self) -> str:
        """Identifies the defect across runs and processes; does not change when lines move."""
        text = "\0".join((self.file, self.rule, " ".join(self.evidence.split())))
        if not self.evidence:
            text += f"\0{self.line}"
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def finding_fields(finding: Finding) -> dict[str, Any]:
    """The finding as JSON members."""
    return {
        "id": finding.id,
        "file": finding.file,
        "line": finding.line,
        "end_line": finding.end_line,
        "rule": finding.rule,
        "severity": finding.severity.value,
        "cwe": finding.cwe,
        "reference": finding.reference,
        "confidence": round(finding.confidence, 3),
        "message": finding.message,
        "evidence": finding.evidence,
        "source": finding.source,
        "detector": finding.detector,
    }


def finding_from_fields(data: dict[str, Any]) -> Finding:
    """The inverse of `finding_fields`.

    Raises:
        KeyError: a member is missing.
        ValueError: the severity is unknown.
    """
    names = ("file", "line", "end_line", "rule", "message", "evidence", "confidence", "detector")
    return Finding(
        **{name: data[name] for name in names},
        severity=Severity(data["severity"]),
        cwe=data["cwe"],
        reference=data["reference"],
        source=data["source"],
    )


def merge_findings(findings: list[Finding]) -> list[Finding]:
    """Findings without duplicates, worst first, then by file and line.

    Two findings are one if they have file, line and rule in common, or file, line and CWE. The one with the
    higher severity stays, then the one with the higher confidence.
    """
    best: dict[tuple[str, int, str], Finding] = {}
    for finding in sorted(findings, key=_strength, reverse=True):
        keys = [(finding.file, finding.line, finding.rule)]
        if finding.cwe is not None:
            keys.append((finding.file, finding.line, f"cwe-{finding.cwe}"))
        if not any(key in best for key in keys):
            best |= dict.fromkeys(keys, finding)
    return sorted(dict.fromkeys(best.values()), key=_order)


def _strength(finding: Finding) -> tuple[int, float, bool]:
    return finding.severity.rank, finding.confidence, finding.source == "detector"


def _order(finding: Finding) -> tuple[int, str, int, str]:
    return -finding.severity.rank, finding.file, finding.line, finding.rule


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
