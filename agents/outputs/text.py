"""`Text`: prose, with what was changed or checked in it."""

from pydantic import Field

from agents.outputs.base import Document, Line
from agents.outputs.checked import Checked


class Text(Checked):
    """A text. `changes` names each change that was made to a given text, one sentence each."""

    text: Document = ""
    changes: list[Line] = Field(default_factory=list, max_length=200)
