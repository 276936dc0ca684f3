"""`Patch`: a unified diff with its reason."""

from pydantic import Field

from agents.outputs.base import Document, Line, Output, Paragraph, Word


class Patch(Output):
    """A change. `diff` is a unified diff with paths relative to the workspace's root."""

    diff: Document = ""
    reason: Paragraph = ""
    finding_ids: list[Word] = Field(default_factory=list)
    tests: list[Line] = Field(default_factory=list)
