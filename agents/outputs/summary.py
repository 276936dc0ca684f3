"""`Summary`: a shorter text and what it keeps."""

from pydantic import Field

from agents.outputs.base import Document, Probability, Word
from agents.outputs.checked import Checked


class Summary(Checked):
    """A summary.

    Attributes:
        text: the summary.
        ratio: its characters divided by those of the source.
        kept_names: share of the source's names that occur in it.
        lines: numbers of the source's lines that its sentences are taken from.
        language: ISO 639-1 code of the source, or empty.
    """

    text: Document = ""
    ratio: float = Field(default=0, ge=0)
    kept_names: Probability = 0
    lines: list[int] = Field(default_factory=list, max_length=1_000)
    language: Word = ""
