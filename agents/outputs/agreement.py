"""`Agreement`: one answer out of several."""

from pydantic import Field

from agents.outputs.base import Document, Output, Paragraph, Part, Probability


class AnswerGroup(Part):
    """Answers that say the same: the one that stands for them, and the numbers of all, from 0."""

    answer: Paragraph
    members: list[int] = Field(max_length=1_000)


class Agreement(Output):
    """The answer of the largest group, and its share of the weight. A tie leaves `answer` empty."""

    answer: Document = ""
    agreement: Probability = 0
    groups: list[AnswerGroup] = Field(default_factory=list, max_length=1_000)
