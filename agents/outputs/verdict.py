"""`Verdict`: passed, failed or not judged, with a score and its reasons."""

from typing import Literal

from pydantic import Field

from agents.outputs.base import Line, Output, Score
from agents.outputs.findings import FindingRecord

Decision = Literal["passed", "failed", "not judged"]


class Verdict(Output):
    """A decision. The score is computed from findings or checks, never taken from a model's text.

    Attributes:
        score: of what `score_of` says, from 0 to 100.
        score_of: what the score is of, such as `the detectors' findings`, and of nothing else.
        passed: whether it passed; null if that was not judged.
        not_judged: why not; empty if it was judged.
        reasons: the score in words first, then what failed.
        findings: what was found.
    """

    score: Score = 0
    score_of: Line = ""
    passed: bool | None = None
    not_judged: Line = ""
    reasons: list[Line] = Field(default_factory=list)
    findings: list[FindingRecord] = Field(default_factory=list)

    @property
    def decision(self) -> Decision:
        """The decision in a word."""
        return decision_of(self.passed)

    def headline(self) -> str:
        """The decision as people read it first."""
        if self.passed is None and self.not_judged:
            return f"Not judged: {self.not_judged}"
        return f"{self.decision.capitalize()}."


def decision_of(passed: bool | None) -> Decision:
    """The decision in a word, from the JSON member `passed`."""
    return "not judged" if passed is None else "passed" if passed else "failed"
