"""`Verdict`: passed, failed or not judged, with a score and its reasons."""

from collections.abc import Mapping
from typing import Any, Literal

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
        return headline_of(self.model_dump(include={"passed", "not_judged"}))


SHOWN_BY_HEADLINE = frozenset(["score", "score_of", "passed", "not_judged"])
"""Members that the headline and the reasons say in words."""


def headline_of(output: Mapping[str, Any]) -> str:
    """The decision as people read it first, from JSON members; empty if they are no verdict's."""
    if "passed" not in output or output.get("cannot_do"):
        return ""
    if output["passed"] is None and output.get("not_judged"):
        return f"Not judged: {output['not_judged']}"
    return f"{decision_of(output['passed']).capitalize()}."


def decision_of(passed: bool | None) -> Decision:
    """The decision in a word, from the JSON member `passed`."""
    return "not judged" if passed is None else "passed" if passed else "failed"
