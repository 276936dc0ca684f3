"""`Route`: the pipeline that a task is sent to."""

from pydantic import Field

from agents.outputs.base import Line, Output, Probability, Word


class Route(Output):
    """A pipeline and the gates that it may not skip."""

    pipeline: Word = ""
    gates: list[Word] = Field(default_factory=list, max_length=20)
    reasons: list[Line] = Field(default_factory=list, max_length=20)
    confidence: Probability = 0
    alternatives: list[Word] = Field(default_factory=list, max_length=10)
