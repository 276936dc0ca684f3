"""`Steps`: a solution in steps, and its answer."""

from pydantic import Field

from agents.outputs.base import Line, Part
from agents.outputs.checked import Checked


class SolutionStep(Part):
    """An expression, its value, and why it is computed."""

    expression: Line
    result: Line
    reason: Line = ""


class Steps(Checked):
    """Steps and answer. Every result is computed."""

    steps: list[SolutionStep] = Field(default_factory=list, max_length=100)
    answer: Line = ""
