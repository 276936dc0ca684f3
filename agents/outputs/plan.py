"""`Plan`: steps with their agents, inputs and dependencies."""

from pydantic import Field

from agents.outputs.base import Line, Part, Word
from agents.outputs.checked import Checked


class PlanStep(Part):
    """One step. `needs` are ids of earlier steps."""

    id: Word
    agent: Word
    input: Line
    needs: list[Word] = Field(default_factory=list)
    done_when: Line = ""


class Plan(Checked):
    """Steps in an order in which each follows what it needs."""

    steps: list[PlanStep] = Field(default_factory=list)
    risks: list[Line] = Field(default_factory=list)
    fallback: Line = ""
