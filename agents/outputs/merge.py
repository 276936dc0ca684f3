"""`Merge`: several results joined into one."""

from typing import Any

from pydantic import Field

from agents.outputs.base import Document, Line, Output, Paragraph, Part


class MergeConflict(Part):
    """A place at which the parts disagree: a path or line, and what each says."""

    place: Line
    values: list[Paragraph] = Field(max_length=50)


class Merge(Output):
    """The merged text, or the merged value; conflicts are listed, and marked in a text."""

    text: Document = ""
    value: Any = None
    conflicts: list[MergeConflict] = Field(default_factory=list, max_length=500)
    duplicates: int = Field(default=0, ge=0)
