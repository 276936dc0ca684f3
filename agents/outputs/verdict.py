"""`Verdict`: pass or fail with a score and its reasons."""

from pydantic import Field

from agents.outputs.base import Line, Output, Score
from agents.outputs.findings import FindingRecord


class Verdict(Output):
    """A decision. The score is computed from findings or checks, never taken from a model's text."""

    score: Score = 0
    passed: bool = False
    reasons: list[Line] = Field(default_factory=list)
    findings: list[FindingRecord] = Field(default_factory=list)
