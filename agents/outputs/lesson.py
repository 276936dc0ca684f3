"""`Lesson`: what a run teaches for the next one."""

from pydantic import Field

from agents.outputs.base import Line, Output, Paragraph


class Lesson(Output):
    """Counts from a run's events, and the advice that follows from them."""

    lesson: Paragraph = ""
    outcome: Line = ""
    repeats: list[Line] = Field(default_factory=list)
    failures: list[Line] = Field(default_factory=list)
    budget: list[Line] = Field(default_factory=list)
