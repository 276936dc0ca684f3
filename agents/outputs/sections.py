"""`Sections`: the parts of a document that is developed from an outline."""

from pydantic import Field

from agents.outputs.base import Line, Paragraph, Part
from agents.outputs.checked import Checked


class Section(Part):
    """One part.

    Attributes:
        title: its heading.
        level: 1 for a part of the whole.
        points: what it must cover.
        material: passages of the sources for it, quoted.
        words: words that it should have.
        text: its prose; empty without a model.
    """

    title: Line
    level: int = Field(ge=1, le=6)
    points: list[Line] = Field(default_factory=list, max_length=50)
    material: list[Paragraph] = Field(default_factory=list, max_length=10)
    words: int = Field(default=0, ge=0)
    text: Paragraph = ""


class Sections(Checked):
    """The parts in order."""

    sections: list[Section] = Field(default_factory=list, max_length=300)
