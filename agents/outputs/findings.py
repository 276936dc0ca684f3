"""`Findings`, `FindingRecord` and `Claim`: the results of audit, security and design reviewers."""

from typing import Literal

from pydantic import Field

from agents.api.finding import Finding, Severity, finding_fields
from agents.outputs.base import Line, Output, Part, Probability, Word


class FindingRecord(Part):
    """A finding with the members of `agents.api.finding.finding_fields`."""

    id: Word
    file: Line
    line: int = Field(ge=0)
    end_line: int = Field(ge=0)
    rule: Word
    severity: Severity
    cwe: int | None = None
    reference: Word | None = None
    confidence: Probability
    message: str = Field(max_length=500)
    evidence: str = Field(default="", max_length=300)
    source: Literal["detector", "model"] = "detector"
    detector: Word = ""

    @classmethod
    def of(cls, finding: Finding) -> "FindingRecord":
        """The record of a finding."""
        return cls(**finding_fields(finding))


class Claim(Part):
    """A statement that was checked, and whether a source supports it."""

    text: Line
    supported: bool | None
    source: Line = ""


class Findings(Output):
    """Defects, worst first."""

    findings: list[FindingRecord] = Field(default_factory=list)
    claims: list[Claim] = Field(default_factory=list)
