"""`Answer`: text with citations."""

from pydantic import Field

from agents.outputs.base import Line, Paragraph, Part
from agents.outputs.checked import Checked


class Citation(Part):
    """A passage that supports the answer."""

    file: Line
    line: int = Field(ge=0)
    end_line: int = Field(ge=0)
    quote: Line


class Answer(Checked):
    """A text, and the passages it rests on."""

    text: Paragraph = ""
    citations: list[Citation] = Field(default_factory=list)
