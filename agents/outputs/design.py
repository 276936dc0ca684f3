"""The results of the design agents: specifications, layouts, tokens, scores, artifacts."""

from typing import Literal

from pydantic import Field

from agents.outputs.base import Document, Line, Output, Part, Score, Word
from agents.outputs.findings import FindingRecord


class Component(Part):
    """A component of a screen: what it is, what it shows, what it does."""

    name: Word
    kind: Word
    text: Line = ""
    action: Line = ""
    states: list[Word] = Field(default_factory=list)


class UISpec(Output):
    """A screen: its components in reading order, and the states it must have."""

    title: Line = ""
    components: list[Component] = Field(default_factory=list)
    states: list[Word] = Field(default_factory=list)
    inventory: dict[Word, int] = Field(default_factory=dict)
    missing: list[Line] = Field(default_factory=list)


class Region(Part):
    """A rectangle of a layout, in columns and rows of its grid."""

    name: Word
    x: int = Field(ge=0)
    y: int = Field(ge=0)
    width: int = Field(ge=1)
    height: int = Field(ge=1)


class ScreenLayout(Part):
    """The regions of one screen size."""

    columns: int
    rows: int
    regions: list[Region]


class Layout(Output):
    """Layouts of one screen at several sizes, and the problems of given ones."""

    layouts: list[ScreenLayout] = Field(default_factory=list)
    findings: list[FindingRecord] = Field(default_factory=list)


class DesignToken(Part):
    """A named value."""

    name: Word
    value: Line
    kind: Literal["color", "size", "other"] = "other"
    uses: int = 0


class Tokens(Output):
    """Tokens of a style, and what is wrong with them."""

    tokens: list[DesignToken] = Field(default_factory=list)
    findings: list[FindingRecord] = Field(default_factory=list)


class Scores(Output):
    """Scores by dimension, computed from measurements, and what lowered them."""

    scores: dict[Word, Score] = Field(default_factory=dict)
    measurements: dict[Word, float] = Field(default_factory=dict)
    findings: list[FindingRecord] = Field(default_factory=list)


class Artifact(Output):
    """A file that was made."""

    name: Word = ""
    content: Document = ""
    findings: list[FindingRecord] = Field(default_factory=list)
