"""`Ranking`: candidates in order, with the checks that decided."""

from pydantic import Field

from agents.outputs.base import Line, Output, Paragraph, Part, Score


class CheckResult(Part):
    """A check of one candidate. A failed hard check ranks it below all that pass."""

    name: Line
    passed: bool
    hard: bool = False
    detail: Line = ""


class RankedCandidate(Part):
    """A candidate: its number from 0, how it begins, its score and checks."""

    index: int = Field(ge=0)
    text: Paragraph
    score: Score
    checks: list[CheckResult] = Field(default_factory=list, max_length=50)


class Ranking(Output):
    """Candidates, best first. `tied` says that the checks could not tell the first two apart."""

    candidates: list[RankedCandidate] = Field(default_factory=list, max_length=100)
    tied: bool = False
