"""`Critique`: weaknesses of a draft, with its statistics and the checklist's coverage."""

from pydantic import Field

from agents.outputs.base import Line, Part, Probability
from agents.outputs.checked import Checked


class TextStatistics(Part):
    """Measures of a text.

    Attributes:
        words: number of words.
        sentences: number of sentences.
        words_per_sentence: mean.
        passive_share: share of sentences in the passive voice (English).
        reading_ease: Flesch reading ease (English): 100 is very easy, 0 very hard; None for other languages.
    """

    words: int = Field(ge=0)
    sentences: int = Field(ge=0)
    words_per_sentence: float = Field(ge=0)
    passive_share: Probability
    reading_ease: float | None = None


class ChecklistItem(Part):
    """An item that the draft should cover, and the line where it does, or 0."""

    text: Line
    covered: bool
    line: int = Field(default=0, ge=0)


class Critique(Checked):
    """Weaknesses are `findings`, worst first."""

    summary: Line = ""
    checklist: list[ChecklistItem] = Field(default_factory=list, max_length=200)
    statistics: TextStatistics | None = None
